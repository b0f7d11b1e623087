"""Addresses of the public internet, and those that hide another."""

import ipaddress

import pytest

from libs.runtime.addresses import is_public

HIDDEN = ("127.0.0.1", "169.254.169.254", "10.1.2.3", "192.168.0.1", "100.64.0.1", "0.0.0.0")


def _forms(inner: str) -> list[str]:
    number = int(ipaddress.IPv4Address(inner))
    high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
    other_high, other_low = f"{(number >> 16) ^ 0xFFFF:x}", f"{(number & 0xFFFF) ^ 0xFFFF:x}"
    return [
        inner,
        f"::{inner}",
        f"::ffff:{inner}",
        f"::ffff:0:{inner}",
        f"64:ff9b::{inner}",
        f"64:ff9b:1::{inner}",
        f"2002:{high}:{low}::",
        f"2001:0:{high}:{low}::f7f7:f7f7",
        f"2001:0:808:808::{other_high}:{other_low}",
        f"2606:4700::5efe:{inner}",
        f"2606:4700::200:5efe:{inner}",
    ]


@pytest.mark.parametrize("address", [form for inner in HIDDEN for form in _forms(inner)])
def test_an_address_that_holds_a_private_one_is_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "fec0::1",
        "ff02::1",
        "100::1",
        "2001:db8::1",
        "3fff::1",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "198.18.0.1",
    ],
)
def test_an_address_of_special_use_is_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "2606:4700:4700::1111",
        "2a00:1450:4001::1",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
        "::ffff:8.8.8.8",
    ],
)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))

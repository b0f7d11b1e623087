"""Which IP addresses are on the public internet, also where one hides another."""

import ipaddress
from collections.abc import Iterator

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_UNICAST = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_6TO4 = ipaddress.ip_network("2002::/16")
_TEREDO = ipaddress.ip_network("2001::/32")
_DOCUMENTATION = ipaddress.ip_network("3fff::/20")
"""Newer than the tables of Python 3.11 (RFC 9637)."""
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})
"""The upper half of an interface identifier that ends with an IPv4 address (RFC 5214)."""
_LOW_32 = 0xFFFF_FFFF


def is_public(address: Address) -> bool:
    """True for an address of the public internet that a program may be sent to.

    Of IPv6 that is global unicast (2000::/3, all that IANA gives out) and the well-known prefix of
    NAT64. An address that holds an IPv4 address (mapped, NAT64, 6to4, Teredo, ISATAP) is public
    only where that one is: a gateway on the way may unwrap it.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    is_global = address in _NAT64 or (address in _UNICAST and address.is_global)
    if not is_global and address not in _6TO4:
        return False
    return address not in _DOCUMENTATION and all(map(is_public, _held(address)))


def _held(address: ipaddress.IPv6Address) -> Iterator[ipaddress.IPv4Address]:
    """The IPv4 addresses in an IPv6 address that a gateway may take out."""
    number = int(address)
    last = ipaddress.IPv4Address(number & _LOW_32)
    if address in _NAT64 or (number >> 32) & _LOW_32 in _ISATAP:
        yield last
    if address in _6TO4:
        yield ipaddress.IPv4Address((number >> 80) & _LOW_32)
    if address in _TEREDO:
        yield ipaddress.IPv4Address((number >> 64) & _LOW_32)
        yield ipaddress.IPv4Address(int(last) ^ _LOW_32)

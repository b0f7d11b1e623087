"""A pair of keys in a file: two words, shown to nobody."""

from pathlib import Path

import pytest

from libs.runtime.key_pair import KeyPairUnusable, key_pair_in

KEY_ID, SECRET = "PKMADEUP0000000000A1", "madeUpSecretOfNobodyAtAll0123456789"


@pytest.mark.parametrize("text", [f"{KEY_ID}\n{SECRET}\n", f"  {KEY_ID} {SECRET}"])
def test_two_words_are_a_pair_on_one_line_or_two(tmp_path: Path, text: str) -> None:
    path = tmp_path / "data.key"
    path.write_text(text)
    pair = key_pair_in(path, "SETTING")
    assert (pair.key_id.get_secret_value(), pair.secret.get_secret_value()) == (KEY_ID, SECRET)
    assert pair.masked == "PKMA..."
    assert KEY_ID not in repr(pair)
    assert SECRET not in repr(pair)
    assert pair.hidden_in(f"a {KEY_ID} b {SECRET}") == "a *** b ***"


@pytest.mark.parametrize(
    "text",
    [
        "",
        KEY_ID,
        f"{KEY_ID} {SECRET} more",
        f"short {SECRET}",
        f"{KEY_ID} é{SECRET}",
        f"{KEY_ID} {SECRET}{' ' * 5_000}",
        f"{KEY_ID} {'x' * 300}",
    ],
)
def test_anything_else_is_refused_without_being_quoted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "data.key"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(KeyPairUnusable, match=r"SETTING: .* must hold two words") as refused:
        key_pair_in(path, "SETTING")
    assert KEY_ID not in str(refused.value)
    assert SECRET not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyPairUnusable, match="nowhere cannot be read"):
        key_pair_in(tmp_path / "nowhere", "SETTING")

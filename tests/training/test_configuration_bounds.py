"""Settings in TOML, within bounds of size, depth and the parts of a key."""

import tomllib
import tracemalloc

import pytest

import oarlock as ol
from oarlock.training.configuration import read_configuration, read_tables


def written(folder, text):
    path = folder / "settings.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".".join(["a"] * 33) + " = 1", '"settings.toml" has a key of more than 32 parts'),
        ("x = 1\n[" + '."b c".'.join(["a"] * 20) + "]", '"settings.toml" has a key of more than 32 parts'),
        ("x = {" + " . ".join(["'a'"] * 33) + " = 1}", '"settings.toml" has a key of more than 32 parts'),
        ("x = " + "{a = " * 70 + "1" + "}" * 70, 'the tables of "settings.toml" are nested more than 64 deep'),
        ("x = " + "[" * 5000, 'the tables or lists of "settings.toml" are nested too deeply'),
        ("x" * 2**20 + " = 1", '"settings.toml" has 1,048,580 bytes, but the limit is 1,048,576'),
    ],
)
def test_what_is_beyond_a_bound_is_refused(tmp_path, text, message):
    with pytest.raises(ol.LimitError) as raised:
        read_configuration(written(tmp_path, text))
    assert raised.value.message == message


@pytest.mark.parametrize("text", ["x = " + "1" * 5000, "x =", "\x00", "x = 2000-99-99"])
def test_what_is_no_toml_is_an_error_of_ours(tmp_path, text):
    with pytest.raises(ol.ArgumentError, match=r'^"settings\.toml" is not valid TOML: '):
        read_configuration(written(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * 32) + " = 1",
        "x = [" + "0.1," * 1000 + "]",
        'x = "' + "one. two. " * 10 + '"\n[a.b]\ny = 1',
        "".join(f"[{'.'.join('abcdefgh')}.k{number}]\nx = 1\n" for number in range(100)),
    ],
)
def test_settings_within_the_bounds_are_those_of_the_file(tmp_path, text):
    assert read_tables(written(tmp_path, text)) == tomllib.loads(text)


def test_a_long_key_takes_no_memory(tmp_path):
    path = written(tmp_path, ".".join(["a"] * 100_000) + " = 1")
    tracemalloc.start()
    try:
        with pytest.raises(ol.LimitError):
            read_tables(path)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()

"""Settings of scripts: declared with a type, given by TOML and by text, refused by name, and written so that they are read again."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

import oarlock as ol
from oarlock.training.configuration import format_toml, read_configuration
from oarlock.training.invocation import Invocation


@dataclass(frozen=True)
class Rates:
    lr: float = 1e-3
    warm_up: int | None = None


@dataclass(frozen=True)
class Settings:
    hidden: int = 32
    act: Literal["relu", "tanh"] = "relu"
    sizes: list[int] = field(default_factory=lambda: [1, 2])
    window: tuple[int, float] = (3, 0.5)
    deep: bool = False
    name: str = "first"
    folder: Path = Path("data")
    train: Rates = field(default_factory=Rates)


def given(*assignments: str, toml: str | None = None, folder: Path | None = None) -> Invocation:
    path = None
    if toml is not None:
        assert folder is not None
        path = folder / "train.toml"
        path.write_text(toml)
    return Invocation(given=read_configuration(path, assignments))


def test_a_script_that_python_runs_has_the_defaults():
    defaults = {"hidden": 32, "train": {"lr": 1e-3}}
    assert ol.settings(defaults) == defaults
    assert ol.settings(Settings()) == Settings()


def test_text_of_a_command_line_gets_the_type_of_the_setting():
    texts = [
        "hidden=8",
        "act=tanh",
        "sizes=4,5,6",
        "window=[5, 1]",
        "deep=true",
        "name=3",
        "folder=a/b",
        "train.lr=3e-4",
        "train.warm_up=7",
    ]
    with given(*texts):
        found = ol.settings(Settings())
    assert found == Settings(8, "tanh", [4, 5, 6], (5, 1.0), True, "3", Path("a/b"), Rates(3e-4, 7))
    assert isinstance(found.window[1], float)
    with given("train.warm_up=none", "hidden=1", "hidden=2"):
        assert ol.settings(Settings(train=Rates(warm_up=3))) == Settings(hidden=2)


def test_a_file_of_toml_gives_settings_and_the_command_line_goes_before_it(tmp_path):
    toml = 'hidden = 8\nname = "second"\nsizes = [9]\n[train]\nlr = 1\nwarm_up = 5\n'
    with given("train.warm_up=6", toml=toml, folder=tmp_path):
        assert ol.settings(Settings()) == Settings(hidden=8, name="second", sizes=[9], train=Rates(1.0, 6))


def test_the_values_in_a_dict_tell_the_types():
    with given("lr=1", "hidden=7", "free=[1, 2]", "word=yes", "rates=1,2.5"):
        found = ol.settings({"lr": 0.5, "hidden": 3, "free": None, "word": None, "rates": [1, 0.5]})
    assert found == {"lr": 1.0, "hidden": 7, "free": [1, 2], "word": "yes", "rates": [1.0, 2.5]}
    assert isinstance(found["lr"], float)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "hiden=8",
            'unknown setting "hiden" in --set hiden\n'
            "      settings: hidden, act, sizes, window, deep, name, folder, train.lr, train.warm_up\n"
            '  Try: did you mean "hidden"?    (oarlock explain ArgumentError)',
        ),
        ("hidden=8.5", "\"hidden\" must be a whole number, such as 32, not '8.5'\n      given by --set hidden"),
        ("train.lr=fast", "\"train.lr\" must be a number, such as 0.001, not 'fast'\n      given by --set train.lr"),
        ("deep=maybe", "\"deep\" must be true or false, such as False, not 'maybe'\n      given by --set deep"),
        ("act=gelu", "\"act\" must be one of 'relu', 'tanh', such as 'relu', not 'gelu'\n      given by --set act"),
        ("sizes=1,x", "\"sizes\" must be a list, each a whole number, such as [1, 2], not '1,x'\n      given by --set sizes"),
        ("window=1,2,3", "\"window\" must be a list, each a whole number, such as (3, 0.5), not '1,2,3'\n      given by --set window"),
        ("train.warm_up=x", "\"train.warm_up\" must be a whole number or none, not 'x'\n      given by --set train.warm_up"),
        (
            "train=3",
            "\"train\" is a section, but --set train sets it to '3'\n"
            "      settings in the section: train.lr, train.warm_up\n"
            "  Try: --set train.lr=VALUE    (oarlock explain ArgumentError)",
        ),
    ],
)
def test_what_is_no_setting_or_no_value_of_one_is_refused(text, message):
    with given(text), pytest.raises(ol.ArgumentError) as refused:
        ol.settings(Settings())
    assert str(refused.value) == message


def test_a_setting_of_another_section_is_named():
    with given("lr=1"), pytest.raises(ol.ArgumentError, match='did you mean "train.lr"'):
        ol.settings(Settings())


def test_a_file_gives_values_of_the_right_types_only(tmp_path):
    with given(toml='[train]\nlr = "fast"\n', folder=tmp_path), pytest.raises(ol.ArgumentError) as refused:
        ol.settings(Settings())
    assert str(refused.value) == "\"train.lr\" must be a number, such as 0.001, not 'fast'\n      given by train.toml"
    with given(toml="hidden = true\n", folder=tmp_path), pytest.raises(ol.ArgumentError, match='"hidden" must be a whole number'):
        ol.settings(Settings())


def test_a_file_that_is_no_toml_and_a_text_without_a_name_are_refused(tmp_path):
    with pytest.raises(ol.ArgumentError, match=r'"train.toml" is not valid TOML: .*line 1'):
        given(toml="hidden: 3", folder=tmp_path)
    with pytest.raises(ol.ArgumentError, match="a setting must be given as NAME=VALUE, not 'hidden'"):
        given("hidden")
    with pytest.raises(ol.MissingFileError):
        read_configuration(tmp_path / "none.toml")


def test_settings_are_a_dict_or_a_dataclass_of_what_a_file_holds():
    with pytest.raises(ol.ArgumentError, match="settings must be a dict or a dataclass instance, not 3"):
        ol.settings(3)
    with pytest.raises(ol.ArgumentError, match="settings must be a dict or a dataclass instance"):
        ol.settings(Settings)
    with pytest.raises(ol.ArgumentError, match='the setting "made" is <class'):
        ol.settings({"made": dict})


def test_an_option_is_that_of_the_setting_of_its_name():
    with Invocation(["oarlock"], given_options={"epochs": 5, "lr": 0.5, "data": "x.csv"}) as invocation:
        assert ol.settings({"epochs": 1, "train": {"lr": 0.1}}) == {"epochs": 5, "train": {"lr": 0.5}}
        assert invocation.options().given == {"data": "x.csv"}
        assert invocation.in_effect == {"train.data": "x.csv", "epochs": 5, "train.lr": 0.5}


VALUES = {
    "text": 'a "quoted"\\ line\nand \x7f \u2028 ünï 🦉',
    "whole": -(2**40),
    "yes": True,
    "no": False,
    "small": 1e-300,
    "large": 1e22,
    "infinite": math.inf,
    "below": -math.inf,
    "a.list": [1, 2.5, "x", [True]],
    "a.deeper.one": 0.1,
    "a b.ü": "keys are quoted",
    "empty": [],
}


def test_what_is_written_as_toml_is_read_again(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(format_toml({**VALUES, "nothing": None, "path": Path("a/b")}), encoding="utf-8")
    read = {name: value.value for name, value in read_configuration(path).items()}
    assert read == {**VALUES, "path": str(Path("a/b"))}
    assert {name: type(value) for name, value in read.items()} == {**{name: type(value) for name, value in VALUES.items()}, "path": str}
    path.write_text(format_toml({"a": math.nan}))
    assert math.isnan(read_configuration(path)["a"].value)
    assert format_toml({}) == ""

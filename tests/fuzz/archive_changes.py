"""Changes of an archive: all that there are, and those of its weights and of its zip."""

import pickle

from fuzz.archive_documents import CHANGES, change
from fuzz.archive_seeds import ArchiveDraft
from fuzz.archive_values import JUNK, NUMBERS, TEXTS

__all__ = ["CHANGES"]


def _tensors(draft: ArchiveDraft) -> list[dict]:
    return [item for part in ("weights", "constants") for item in draft.documents[part]["config"].values()]


@change
def what_a_tensor_says_of_itself(random, draft):
    meta = random.choice(_tensors(draft))["tensor_meta"]
    part = random.choice(["sizes", "strides", "storage_offset", "dtype", "requires_grad", "sizes"])
    if part in ("sizes", "strides"):
        meta[part] = [{"as_int": random.choice(NUMBERS)} for _ in range(random.choice([0, 1, 2, 2, 17]))]
    elif part == "storage_offset":
        meta[part] = random.choice([{"as_int": random.choice(NUMBERS)}, None, -1, {"as_expr": {"expr_str": "s0"}}])
    else:
        meta[part] = random.choice([*range(-1, 40), "x", None])


@change
def a_tensor_of_one_number(random, draft):
    """Many elements of one: nothing in the file says how large it is in memory."""
    for item in random.sample(_tensors(draft), random.choice([1, 1, 3])):
        size = random.choice([2**10, 2**20, 2**28, 2**31 - 1])
        item["tensor_meta"].update(sizes=[{"as_int": size}], strides=[{"as_int": 0}])


@change
def where_a_tensor_lies(random, draft):
    item = random.choice(_tensors(draft))
    key, values = random.choice(
        [
            ("path_name", ["weight_1", "../weight_0", "/etc/passwd", "", None, "weight_0\0", 3, "model_weights_config.json"]),
            ("use_pickle", [True, None, 0, "false"]),
            ("is_param", [True, False, None, "x"]),
            ("tensor_meta", [None, {}, []]),
        ]
    )
    item[key] = random.choice(values)


@change
def which_tensors_there_are(random, draft):
    config = draft.documents[random.choice(["weights", "constants"])]
    kind = random.choice(["gone", "named", "other", "many"])
    if kind == "gone":
        config["config"].pop(random.choice(list(config["config"])))
    elif kind == "named":
        name = random.choice(list(config["config"]))
        config["config"][random.choice(TEXTS)] = config["config"].pop(name)
    elif kind == "many":
        item = random.choice(list(config["config"].values()))
        config["config"].update({f"more.{number}": item for number in range(random.choice([10, 3000]))})
    else:
        config["config"] = random.choice(JUNK)


@change
def bytes_of_a_tensor(random, draft):
    path = random.choice([path for path in draft.entries if "/weights/weight_" in path or "/constants/tensor_" in path])
    given = draft.entries[path]
    draft.entries[path] = random.choice(
        [b"", given[:-1], given * 3, b"\xff" * len(given), b"\0\0\xc0\x7f" * (len(given) // 4), pickle.dumps({"x": 1})]
    )


# The zip


@change
def a_path_in_the_archive(random, draft):
    path = random.choice(list(draft.entries))
    folder, _, rest = path.partition("/")
    other = random.choice(
        [
            f"../{path}",
            f"/{path}",
            path.upper(),
            f"other/{rest}",
            rest,
            f"{path}/",
            f"{folder}//{rest}",
            path[:-1],
            "archive/\x1b[2J",
            f"{path}\\x",
        ]
    )
    draft.entries[other] = draft.entries.pop(path)


@change
def an_entry_twice(random, draft):
    path = random.choice(list(draft.entries))
    draft.listed.append(
        (path.replace("archive/", random.choice(["archive/", "other/", "../"]), 1), random.choice([b"", draft.entries[path], b"{}"]))
    )


@change
def an_entry_is_gone(random, draft):
    del draft.entries[random.choice(list(draft.entries))]


@change
def two_models(random, draft):
    draft.listed.append((draft.paths["model"].replace("model.json", random.choice(["other.json", "x/model.json", "\x1b.json"])), b"{}"))

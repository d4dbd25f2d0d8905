#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The calls that tutorials on TensorFlow's profiler show, as far as they need
no TensorFlow: options and their builder, tables of real runs, saved and loaded
profiles, and what is said of arguments that cannot be."""

import copy
import json
import os
import pickle
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

sys.path.insert(0, lib.PACKAGE)
try:
    import opscope
except ImportError as e:
    opscope, WHY = None, str(e)

DATA = os.path.join(lib.ROOT, "tests", "data", "tf_v1")
STEPS = (1, 10, 100)
OPSCOPE = os.environ.get("OPSCOPE", os.path.join(lib.ROOT, "build",
                                                 "opscope"))


def _module():
    if opscope is None:
        raise lib.Skip("the extension is not built: %s" % WHY)
    return opscope.compat.tf_profiler


def _says(call, *words):
    """The call raises opscope.Error, whose sentence has these words."""
    try:
        call()
    except opscope.Error as e:
        for w in words:
            assert w in str(e), (w, str(e))
        return
    raise AssertionError("nothing was raised, for %s" % (words,))


def _profiler():
    """A Profiler with the marks of three real runs, as add_step makes them
    where TensorFlow is installed."""
    _module()
    from opscope.compat.marks import Mark
    prof = opscope.Profiler()
    prof._known = {"nodes": [], "variables": []}
    prof.marks = [Mark(i + 1, step=s, source="run_metadata", files=[
        os.path.join(DATA, "run_metadata_%03d.pb" % s)])
        for i, s in enumerate(STEPS)]
    return prof


def _command(*words):
    out = subprocess.run([OPSCOPE, *words, "--format", "json"], check=True,
                         stdout=subprocess.PIPE).stdout
    doc = json.loads(out)
    names = [c["name"] for c in doc["columns"]]
    return [dict(zip(names, r)) for r in doc["rows"]]


def test_names_are_in_opscope_and_in_compat():
    m = _module()
    assert opscope.Profiler is m.Profiler
    assert opscope.ProfileOptionBuilder is m.ProfileOptionBuilder
    for name in ("start", "stop", "profile", "profile_operations", "save",
                 "profile_name_scope", "profile_graph", "profile_model",
                 "profile_python", "load_profile", "profile_and_save",
                 "add_step", "advise", "compare"):
        assert callable(getattr(opscope.Profiler, name)), name
    assert "tensorflow" not in sys.modules


def test_options_are_a_dict_that_knows_its_keys():
    _module()
    o = opscope.ProfileOptionBuilder.time_and_memory()
    o["min_bytes"] = 1 << 20
    o["show_input_output"] = True
    assert o.min_bytes == 1 << 20 and o["min_micros"] == 1
    o.min_bytes = "1M"
    assert o["min_bytes"] == 1 << 20
    o["profile_steps"] = "1,10,100"
    assert o["profile_steps"] == [1, 10, 100]
    for again in (copy.copy(o), copy.deepcopy(o), pickle.loads(
            pickle.dumps(o)), json.loads(json.dumps(o))):
        assert again == o
    o["select"].append("bytes")
    assert opscope.ProfileOptionBuilder.time_and_memory()["select"] == [
        "micros", "bytes"]
    del o["min_bytes"]
    assert o["min_bytes"] == 0 and o.pop("top") == 0
    _says(lambda: o["min_byte"], "min_byte", "there are")
    _says(lambda: o.__setitem__("min_byte", 1), "did you mean 'min_bytes'")
    for key, value in (("min_bytes", -1), ("min_bytes", "much"),
                       ("min_bytes", 1.5), ("order_by", "size"),
                       ("select", ["size"]), ("step", "x"), ("step", -2),
                       ("select", None), ("start_name_regexes", 5),
                       ("show_name_regexes", ["("]), ("scope", 3),
                       ("output", "file"), ("output", "printer"),
                       ("profile_steps", "a"), ("profile_steps", []),
                       ("show_input_output", "yes"), ("min_micros", "1")):
        _says(lambda: o.__setitem__(key, value), key)


def test_the_builder_maps_to_options():
    _module()
    B = opscope.ProfileOptionBuilder
    start = B.time_and_memory(min_micros=5, min_bytes=7)
    o = (B(start).with_max_depth(3).with_min_memory(min_bytes=9,
                                                    min_peak_bytes=2)
         .with_min_execution_time(min_micros=4).with_min_parameters(6)
         .with_min_occurrence(2).with_min_float_operations(8)
         .with_accounted_types(["MatMul"])
         .with_node_names(start_name_regexes=["a.*"],
                          hide_name_regexes=["b"])
         .account_displayed_op_only(True).with_step(10).with_empty_output()
         .order_by("micros").select(["micros", "occurrence"]).build())
    assert (o["max_depth"], o["min_bytes"], o["min_peak_bytes"],
            o["min_micros"], o["min_params"], o["min_occurrence"],
            o["min_float_ops"]) == (3, 9, 2, 4, 6, 2, 8)
    assert o["account_type_regexes"] == ["MatMul"] and o["step"] == 10
    assert o["hide_name_regexes"] == ["b"] and o["output"] == "none"
    assert start["min_bytes"] == 7, "the builder works on a copy"
    assert B.float_operation()["order_by"] == "float_ops"
    assert B.trainable_variables_parameter()["account_type_regexes"] == [
        "_trainable_variables"]
    _says(lambda: B().order_by("size"), "order_by", "micros")
    _says(lambda: B(3), "options", "int")


def test_operations_are_those_of_the_command_line():
    prof = _profiler()
    B, calls_of_all = opscope.ProfileOptionBuilder, 0
    for step in STEPS:
        path = os.path.join(DATA, "run_metadata_%03d.pb" % step)
        theirs = {}
        for r in _command("ops", path, "--top", "0"):
            if r["kind"] == "op":
                name = r["type"] or r["name"]
                calls, us = theirs.get(name, (0, 0.0))
                theirs[name] = (calls + r["calls"], us + float(r["host_us"]))
        o = B(B.time_and_memory(0, 0)).with_step(step).build()
        mine = {r.name: r for r in prof.profile_operations(o)}
        assert set(mine) == set(theirs)
        for name, r in mine.items():
            assert r.calls == theirs[name][0], r
            assert abs(r.host_us - theirs[name][1]) < 0.01, r
        calls_of_all += sum(r.calls for r in mine.values())
    together = prof.profile_operations(B.time_and_memory(0, 0))
    assert sum(together["calls"]) == calls_of_all


def test_scopes_are_those_of_the_tree():
    prof = _profiler()
    path = os.path.join(DATA, "run_metadata_010.pb")
    o = opscope.ProfileOptionBuilder.time_and_memory(0, 0)
    o["step"] = 10
    mine = {r.path: r for r in prof.profile_name_scope(o)}
    theirs = {r["path"]: r for r in _command("tree", path, "--by", "scope",
                                             "--top", "0")}
    assert set(mine) == set(theirs)
    for p, r in mine.items():
        assert (r.calls, r.bytes) == (theirs[p]["calls"],
                                      theirs[p]["bytes"]), r
    scope = max((p for p in mine if "/" in p), key=lambda p: mine[p].calls
                ).split("/")[0]
    o["scope"] = scope
    few = {r.path for r in prof.profile_name_scope(o)}
    assert few == {r["path"] for r in _command(
        "tree", path, "--by", "scope", "--top", "0", "--scope", scope)}
    o["max_depth"] = 1
    assert [r.path for r in prof.profile_name_scope(o)] == [scope]


def test_thresholds_order_and_top_are_honoured():
    prof = _profiler()
    every = prof.profile_operations({"order_by": "bytes"})
    sizes = [b for b in every["bytes"] if b]
    assert sizes and sizes == sorted(sizes, reverse=True)
    least = sizes[len(sizes) // 2]
    t = prof.profile_operations({"order_by": "bytes", "min_bytes": least})
    assert t["bytes"] == [b for b in sizes if b >= least]
    t = prof.profile_operations({"top": 2, "order_by": "occurrence"})
    assert len(t) == 2 and t.total_rows == len(every)
    assert t["calls"] == sorted(every["calls"], reverse=True)[:2]
    name = every[0].name
    t = prof.profile_operations({"account_type_regexes": [name]})
    assert t["name"] == [name]


def test_the_text_shows_what_rows_were_chosen_by():
    prof = _profiler()
    for options, column in (({"min_bytes": 2}, "bytes"),
                            ({"order_by": "residual_bytes"}, "kept_bytes"),
                            ({"show_memory": True}, "peak_bytes")):
        t = prof.profile_operations(options)
        head = t.text().splitlines()[2].split()
        assert column in head and "host_us" in head, (options, head)
    head = prof.profile_operations({}).text().splitlines()[2].split()
    assert "bytes" not in head, head


def test_what_is_not_known_is_none_and_said():
    prof = _profiler()
    t = prof.profile_operations({"select": ["device", "tensor_value"]})
    assert all(v is None for v in t["device_us"])
    assert any("device" in r for r in t.remarks), t.remarks
    t = prof.profile_model()
    assert len(t) == 0 and any("variables" in r for r in t.remarks)
    t = prof.compare(by="memory")
    assert all(v is None for v in t["bytes_step1"]), t
    t = opscope.Profiler().profile_name_scope()
    assert len(t) == 0 and any("Nothing was recorded" in r
                               for r in t.remarks)
    _says(lambda: prof.profile_operations({"step": 7}), "7", "step1")
    _says(lambda: prof.compare(by="size"), "by is one of")
    _says(opscope.Profiler().advise, "nothing was recorded")


def test_saved_and_loaded_profiles_are_equal():
    prof = _profiler()
    calls = ("profile_operations", "profile_name_scope", "profile_graph",
             "profile_model", "profile_python", "compare")
    with tempfile.TemporaryDirectory() as folder:
        path = prof.save(os.path.join(folder, "a", "p"))
        for again in (opscope.Profiler().load_profile(path),
                      _again(path, folder)):
            for call in calls:
                assert getattr(again, call)() == getattr(prof, call)(), call
        assert prof.profile_operations() != prof.profile_name_scope()
        prof.save(path)     # over what was saved
        assert sorted(os.listdir(os.path.join(folder, "a"))) == ["p"]
        assert [r.step for r in _steps_marks(path)] == list(STEPS)


def _again(path, folder):
    """What was loaded, saved once more under another name."""
    other = os.path.join(folder, "q")
    opscope.Profiler().load_profile(path).save(other)
    return opscope.Profiler().load_profile(other)


def _steps_marks(path):
    return opscope.Profiler().load_profile(path).marks


def test_a_damaged_profile_is_told():
    prof = _profiler()
    with tempfile.TemporaryDirectory() as folder:
        path = prof.save(os.path.join(folder, "p"))
        index = os.path.join(path, "opscope-profile.json")
        load = opscope.Profiler().load_profile
        _says(lambda: prof.save(folder), "no saved profile")
        _says(lambda: load(os.path.join(folder, "none")), "no such")
        with open(index) as f:
            whole = json.load(f)
        for key in list(whole):
            _write(index, {k: v for k, v in whole.items() if k != key})
            _says(lambda: load(path), "damaged")
        for bad in ([], dict(whole, marks=[{}]), dict(whole, nodes=[{}]),
                    dict(whole, marks=3), dict(whole, opscope_profile=99)):
            _write(index, bad)
            _says(lambda: load(path), "opscope-profile.json")
        marks = copy.deepcopy(whole["marks"])
        marks[0]["files"][0]["path"] = "../../etc/passwd"
        _write(index, dict(whole, marks=marks))
        _says(lambda: load(path), "outside")
        _write(index, whole)
        data = os.path.join(path, whole["marks"][0]["files"][0]["path"])
        with open(data, "ab") as f:
            f.write(b"x")
        _says(lambda: load(path), "damaged")
        os.unlink(data)
        _says(lambda: load(path), "not there")


def _write(path, value):
    with open(path, "w") as f:
        json.dump(value, f)


def test_any_profile_can_be_loaded():
    _module()
    path = os.path.join(lib.ROOT, "tests", "data", "tf_eager",
                        "vm.xplane.pb")
    prof = opscope.Profiler().load_profile(path)
    ops = {r["name"]: r for r in _command("ops", path, "--top", "0")}
    t = prof.profile_operations()
    assert len(t) and all(r.calls == ops[r.name]["calls"] for r in t
                          if r.name in ops), t
    assert len(prof.profile_name_scope())


def test_a_result_is_one_like_the_others():
    t = _profiler().profile_operations()
    assert isinstance(t, opscope.Result)
    assert t[0].name == t["name"][0] and t[-1] == t.rows()[-1]
    assert len(t.csv().splitlines()) == len(t) + 1
    assert json.loads(t.json())["rows"][0][0] == t[0].name
    assert t.ps("host_us")[0] == round(t[0].host_us * 1e6)
    assert "<table>" in t._repr_html_() and str(t).startswith("Operations")
    _says(lambda: t["nothing"], "no column")


def test_outputs_go_beside_the_result():
    prof = _profiler()
    B = opscope.ProfileOptionBuilder
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.txt")
        t = prof.profile_operations(B().with_file_output(path).build())
        with open(path, encoding="utf-8") as f:
            assert f.read() == t.text()
        o = B().with_timeline_output(os.path.join(folder, "t.json"))
        t = prof.profile_graph(o.with_step(10).build())
        assert not any("honoured" in r for r in t.remarks), t.remarks
        with open(os.path.join(folder, "t.json")) as f:
            assert json.load(f)
        bad = B().with_file_output(os.path.join(folder, "no", "t"))
        _says(lambda: prof.profile_operations(bad), "output")
    t = prof.profile_operations(B().with_pprof_output("x").build())
    assert any("pprof" in r for r in t.remarks) and not os.path.exists("x")


def test_bad_arguments_are_sentences():
    m = _module()
    _says(lambda: opscope.Profiler(3), "log_dir", "3")
    _says(lambda: opscope.Profiler(graph="g"), "graph")
    prof = opscope.Profiler()
    _says(lambda: prof.add_step(1, {}), "RunMetadata")
    _says(lambda: prof.step("one"), "step")
    _says(lambda: prof.save(3), "folder")
    _says(lambda: prof.load_profile(None), "folder")
    _says(lambda: prof.load_profile(__file__), "not a profile")
    _says(lambda: prof.profile(name=3), "name is a text")
    _says(lambda: prof.profile([1]), "options", "list")
    _says(lambda: prof.profile_model(model=3), "Keras")
    _says(lambda: m.profile("train", cmd="op"), "block")
    _says(lambda: m.profile(cmd="all"), "cmd is one of")
    assert prof.stop() is None and prof.marks == []


def test_without_tensorflow_a_sentence_says_so():
    _module()
    code = """
import sys
sys.modules["tensorflow"] = None
import opscope
from opscope.compat import tf_profiler
def block():
    with tf_profiler.profile("train"):
        pass
for call in (opscope.Profiler("x").start, opscope.Profiler("x").profile,
             block, tf_profiler.profile, tf_profiler.advise):
    try:
        call()
    except opscope.Error as e:
        assert "pip install tensorflow" in str(e), e
        continue
    raise AssertionError(call)
import os
assert not os.path.exists("x")
assert any("TensorFlow" in r for r in opscope.Profiler().profile_graph()
           .remarks)
"""
    with tempfile.TemporaryDirectory() as folder:
        p = subprocess.run([sys.executable, "-c", code], cwd=folder,
                           env={**os.environ, "PYTHONPATH": lib.PACKAGE},
                           stderr=subprocess.PIPE, text=True)
    assert p.returncode == 0, p.stderr[-600:]


if __name__ == "__main__":
    sys.exit(lib.run(sys.modules[__name__]))

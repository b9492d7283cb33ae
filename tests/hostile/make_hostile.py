#!/usr/bin/env python3
"""Writes tests/hostile/data: step files that must be refused, one attack each.

Every file is a small valid step (BASE below) with one thing wrong, so the name of the file says all that is wrong with
it. What the reader must answer stands in hostile_rows.cpp. Run it again after an edit; the files are kept in the
repository, and the same script gives the same bytes:

    tests/hostile/make_hostile.py              writes the files
    tests/hostile/make_hostile.py --base FILE  writes only the valid step

Needs nothing but Python and, for the files that are compressed, the zstd command.
"""

import copy
import json
import pathlib
import subprocess
import sys

SECTIONS = ["meta", "strings", "modules", "passes", "calls", "sources", "layouts", "storages", "tensors", "bindings",
            "nodes", "args", "regions", "ops", "saves", "notes", "events"]

# A training step of two micro-batches that uses every table and every kind of event.
BASE = {
    "meta": [["recorded_by", "tests/hostile/make_hostile.py"]],
    "strings": ["", "Net", "fc", "Linear", "cpu", "weight", "running_mean", "aten.mm.default", "MmBackward0", "dim",
                "train.py", "forward", "dp", "c10d.allreduce_.default", "placeholder", "loss.item() read as 1.0",
                "aten.t.default", "aten.add_.Tensor", "mode", "sum", "act"],
    "modules": [[None, 0, 1], [0, 2, 3], [0, 20, 3]],
    "passes": [["forward", 0, 0, 0], ["loss", 0, 0, 0], ["backward", 0, 0, 0], ["forward", 1, 0, 0],
               ["optimizer", 0, 0, 0]],
    "calls": [[0, None, 0, 0, [1], [3]], [1, 0, 0, 0, [1], [3]], [1, None, 0, 3, [1], []]],
    "sources": [[10, 12, 11]],
    "layouts": [["float32", [2, 4], [4, 1]], ["float32", [4, 2], [1, 4]], ["bfloat16", [], []], ["int64", [0], [1]]],
    # bytes, device, role, of
    "storages": [[32, 4, "parameter", None], [32, 4, "input", None], [32, 4, "plain", None], [32, 4, "gradient", 0],
                 [8, 4, "buffer", None], [32, 4, "optimizer_state", 0], [2, 4, "plain", None],
                 [32, 4, "plain", None]],
    # storage, version, layout, offset, is_view
    "tensors": [[0, 0, 0, 0, False], [1, 0, 0, 0, False], [0, 0, 1, 0, True], [2, 0, 0, 0, False],
                [3, 0, 0, 0, False], [0, 1, 0, 0, False], [4, 0, 2, 3, False], [5, 0, 0, 0, False],
                [6, 0, 2, 0, False], [7, 0, 0, 0, False], [7, 0, 3, 0, False]],
    "bindings": [[1, 5, 0, "parameter", True], [1, 6, 6, "buffer", False]],
    "nodes": [[8, 0, 0], [8, 1, 3]],
    "args": [[[9, -1], [18, {"string": 19}]],
             [[9, [1, 2.5, {"float": "inf"}, None, True]], [18, {"inputs": [0, 2]}]],
             []],
    # kind, parent, call, args, held
    "regions": [["autocast", None, 0, 0, []], ["checkpoint", 0, 1, None, [1]]],
    # name, pass, call, node, region, inputs, outputs, aliases, args, flops, read, written, flags, group, stream, source
    "ops": [[16, 0, 1, None, None, [0], [2], ["view:0"], None, 0, None, None, "", None, 0, 0],
            [7, 0, 1, 0, 1, [1, 2], [3], [], 1, 64, 64, 32, "r", None, 0, 0],
            [7, 1, None, None, None, [3], [8], [], None, None, None, None, "", None, 0, None],
            [7, 2, 1, 0, None, [1, 3], [4], [], 0, None, None, None, "", None, 0, None],
            [13, 2, None, None, None, [4], [7], ["existing"], None, None, None, None, "ce", 12, 1, None],
            [7, 3, 2, 1, None, [1], [9], [], None, None, None, None, "", None, 0, None],
            [17, 4, None, None, None, [0, 4], [5], ["mutates:0"], 2, None, None, None, "", None, 0, None]],
    "saves": [[0, 0, 1, True], [0, 1, 3, False]],
    "notes": [[14, 15, 1]],
    "events": [["phase", 0], ["enter", 0], ["enter", 1], ["begin", 0], ["end", 0], ["pack", 0], ["begin", 1],
               ["alloc", 2], ["end", 1], ["pack", 1], ["exit", 1], ["exit", 0], ["free", 2], ["phase", 1],
               ["begin", 2], ["alloc", 6], ["end", 2], ["phase", 2], ["node", 0], ["unpack", 0], ["unpack", 1],
               ["begin", 3], ["alloc", 3], ["end", 3], ["drop", 0], ["drop", 1], ["done", 0], ["release", 0],
               ["release", 1], ["begin", 4], ["end", 4], ["phase", 3], ["enter", 2], ["begin", 5], ["alloc", 7],
               ["end", 5], ["exit", 2], ["resize", 7, 64], ["phase", 4], ["begin", 6], ["end", 6], ["free", 7]],
}

FIRST_LINE = '{"tidemark":"step","version":[1,0]}'
END = '{"section":"end","count":0}'


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def header(name, count):
    return compact({"section": name, "count": count})


def lines_of(step):
    lines = [FIRST_LINE]
    for name in SECTIONS:
        lines.append(header(name, len(step[name])))
        lines += [compact(row) for row in step[name]]
    return lines + [END]


def text_of(lines):
    return ("\n".join(lines) + "\n").encode()


def compress(data, *options):
    return subprocess.run(["zstd", "-q", "-c", "--no-check", *options], input=data, stdout=subprocess.PIPE,
                          check=True).stdout


# --- One field of one row: file name, section, row, path of positions in the row, new value.

BIG = 2**63 - 1
FIELDS = [
    # Ids that lead nowhere, one for each reference of each table.
    ("module_parent_dangling", "modules", 1, [0], 99),
    ("module_name_dangling", "modules", 1, [1], 99),
    ("module_type_dangling", "modules", 1, [2], 99),
    ("call_module_dangling", "calls", 1, [0], 99),
    ("call_pass_dangling", "calls", 1, [3], 99),
    ("call_input_dangling", "calls", 1, [4, 0], 99),
    ("call_output_dangling", "calls", 1, [5, 0], 99),
    ("source_file_dangling", "sources", 0, [0], 99),
    ("source_function_dangling", "sources", 0, [2], 4294967294),
    ("storage_device_dangling", "storages", 0, [1], 99),
    ("storage_owner_dangling", "storages", 3, [3], 99),
    ("tensor_storage_dangling", "tensors", 0, [0], 99),
    ("tensor_layout_dangling", "tensors", 0, [2], 99),
    ("binding_module_dangling", "bindings", 0, [0], 99),
    ("binding_name_dangling", "bindings", 0, [1], 99),
    ("binding_tensor_dangling", "bindings", 0, [2], 99),
    ("node_name_dangling", "nodes", 0, [0], 99),
    ("node_pass_dangling", "nodes", 0, [2], 99),
    ("arg_name_dangling", "args", 0, [1, 0], 99),
    ("arg_string_dangling", "args", 0, [1, 1], {"string": 99}),
    ("region_call_dangling", "regions", 0, [2], 99),
    ("region_args_dangling", "regions", 0, [3], 99),
    ("region_held_dangling", "regions", 1, [4, 0], 99),
    ("op_name_dangling", "ops", 1, [0], 99),
    ("op_pass_dangling", "ops", 1, [1], 99),
    ("op_call_dangling", "ops", 1, [2], 99),
    ("op_node_dangling", "ops", 1, [3], 99),
    ("op_region_dangling", "ops", 1, [4], 99),
    ("op_input_dangling", "ops", 1, [5, 1], 99),
    ("op_output_dangling", "ops", 1, [6, 0], 99),
    ("op_args_dangling", "ops", 1, [8], 99),
    ("op_group_dangling", "ops", 4, [13], 99),
    ("op_source_dangling", "ops", 1, [15], 99),
    ("save_node_dangling", "saves", 0, [0], 99),
    ("save_tensor_dangling", "saves", 0, [2], 99),
    ("note_kind_dangling", "notes", 0, [0], 99),
    ("note_text_dangling", "notes", 0, [1], 99),
    ("note_op_dangling", "notes", 0, [2], 99),
    ("event_phase_dangling", "events", 0, [1], 99),
    ("event_enter_dangling", "events", 1, [1], 99),
    ("event_begin_dangling", "events", 3, [1], 99),
    ("event_alloc_dangling", "events", 7, [1], 99),
    ("event_pack_dangling", "events", 5, [1], 99),
    ("event_node_dangling", "events", 18, [1], 99),
    ("event_resize_dangling", "events", 37, [1], 99),
    # Cycles.
    ("module_parent_itself", "modules", 1, [0], 1),
    ("module_parent_later", "modules", 1, [0], 2),
    ("call_parent_itself", "calls", 1, [1], 1),
    ("call_parent_later", "calls", 0, [1], 1),
    ("region_parent_itself", "regions", 0, [1], 0),
    ("region_parent_later", "regions", 0, [1], 1),
    # Numbers.
    ("storage_size_negative", "storages", 0, [0], -1),
    ("storage_size_2_to_63", "storages", 0, [0], 2**63),
    ("storage_size_2_to_64", "storages", 0, [0], 2**64),
    ("storage_size_float", "storages", 0, [0], 32.5),
    ("storage_sizes_sum_overflows", "storages", 1, [0], BIG),
    ("layout_size_negative", "layouts", 0, [1, 0], -2),
    ("layout_stride_negative", "layouts", 0, [2, 0], -4),
    ("layout_product_overflows", "layouts", 0, [1], [2**40, 2**40]),
    ("layout_product_of_empty_overflows", "layouts", 3, [], ["int64", [2**40, 0, 2**40], [0, 1, 0]]),
    ("layout_extent_overflows", "layouts", 0, [2], [2**62, 2**62]),
    ("layout_more_strides_than_sizes", "layouts", 0, [2], [4, 1, 1]),
    ("layout_of_65_dimensions", "layouts", 2, [1], [1] * 65),
    ("tensor_beyond_its_storage", "tensors", 3, [3], 1),
    ("tensor_offset_negative", "tensors", 3, [3], -1),
    ("tensor_offset_overflows", "tensors", 3, [3], BIG),
    ("tensor_version_2_to_32", "tensors", 3, [1], 2**32),
    ("node_sequence_negative", "nodes", 0, [1], -1),
    ("pass_micro_batch_too_large", "passes", 3, [1], 2**26),
    ("op_flops_negative", "ops", 1, [9], -5),
    ("op_stream_2_to_16", "ops", 1, [14], 65536),
    ("op_input_id_2_to_32", "ops", 1, [5, 0], 2**32),
    ("resize_negative", "events", 37, [2], -1),
    ("resize_beyond_2_to_62", "events", 37, [2], 2**62 + 1),
    ("arg_integer_2_to_64", "args", 0, [0, 1], 2**64),
    # Words.
    ("layout_dtype_unknown", "layouts", 0, [0], "float33"),
    ("pass_kind_unknown", "passes", 1, [0], "sideward"),
    ("region_kind_unknown", "regions", 0, [0], "magic"),
    ("storage_role_unknown", "storages", 0, [2], "Parameter"),
    ("binding_kind_unknown", "bindings", 0, [3], "param"),
    ("event_kind_unknown", "events", 0, [0], "phases"),
    ("op_flags_out_of_order", "ops", 4, [12], "ec"),
    ("op_flags_repeated", "ops", 4, [12], "cce"),
    ("op_alias_unknown", "ops", 0, [7], ["borrows:0"]),
    ("op_alias_without_input", "ops", 0, [7], ["view"]),
    ("op_alias_number_with_leading_zero", "ops", 0, [7], ["view:00"]),
    ("word_with_terminal_escape", "passes", 1, [0], "\x1b[2J\x1b[31m"),
    ("word_of_5000_letters", "passes", 1, [0], "a" * 5000),
    ("arg_float_word_unknown", "args", 1, [0, 1, 2], {"float": "infinity"}),
    ("arg_tag_unknown", "args", 1, [0, 1, 2], {"double": 1}),
    ("arg_tag_empty", "args", 1, [0, 1, 2], {}),
    ("arg_two_tags", "args", 1, [0, 1, 2], {"string": 0, "inputs": [0, 0]}),
    ("arg_plain_string", "args", 1, [0, 1, 2], "sum"),
    # Values of the wrong kind.
    ("id_is_a_string", "modules", 1, [1], "2"),
    ("id_is_null", "modules", 1, [1], None),
    ("id_is_negative", "modules", 1, [1], -1),
    ("id_is_a_float", "modules", 1, [1], 2.0),
    ("string_is_a_number", "strings", 2, [], 7),
    ("string_is_an_object", "strings", 2, [], {"fc": 1}),
    ("boolean_is_a_number", "tensors", 0, [4], 0),
    ("list_is_a_number", "ops", 1, [5], 1),
    ("row_is_an_object", "modules", 1, [], {"parent": 0, "name": 2, "type": 3}),
    ("row_is_null", "modules", 1, [], None),
    ("row_has_too_few_values", "modules", 1, [], [0, 2]),
    ("row_has_too_many_values", "modules", 1, [], [0, 2, 3, 4]),
    ("event_resize_without_bytes", "events", 37, [], ["resize", 7]),
    ("event_free_with_bytes", "events", 41, [], ["free", 7, 64]),
    # Rows that contradict each other.
    ("module_name_with_a_dot", "modules", 1, [1], 7),
    ("module_name_empty", "modules", 1, [1], 0),
    ("module_names_of_siblings_equal", "modules", 2, [1], 2),
    ("binding_names_equal", "bindings", 1, [1], 5),
    ("binding_to_an_input", "bindings", 0, [2], 1),
    ("storage_owner_is_no_parameter", "storages", 5, [3], 1),
    ("storage_owner_of_an_input", "storages", 1, [3], 0),
    ("storage_device_empty", "storages", 0, [1], 0),
    ("op_name_empty", "ops", 1, [0], 0),
    ("op_collective_without_group", "ops", 4, [13], None),
    ("op_group_without_collective", "ops", 1, [13], 12),
    ("op_more_aliases_than_outputs", "ops", 0, [7], ["view:0", "view:0"]),
    ("op_fewer_aliases_than_outputs", "ops", 0, [6], [2, 2]),
    ("op_aliases_all_fresh", "ops", 1, [7], ["fresh"]),
    ("op_view_of_missing_input", "ops", 0, [7], ["view:1"]),
    ("op_view_of_another_storage", "ops", 0, [5], [1]),
    ("op_view_of_another_version", "ops", 0, [6], [5]),
    ("op_mutates_without_newer_version", "ops", 6, [6], [0]),
    ("op_args_name_missing_input", "args", 1, [1, 1], {"inputs": [0, 3]}),
    ("arg_inputs_backwards", "args", 1, [1, 1], {"inputs": [2, 0]}),
    ("arg_stands_twice", "args", 1, [1, 0], 9),
    ("arg_lists_nested_6_deep", "args", 1, [0, 1], [[[[[[1]]]]]]),
    ("region_args_name_inputs", "regions", 0, [3], 1),
    ("save_slots_equal", "saves", 1, [1], 0),
    ("call_index_wrong", "calls", 1, [2], 1),
    ("call_given_a_tensor_of_later", "calls", 0, [4], [4]),
    ("call_returns_a_tensor_of_later", "calls", 1, [5], [4]),
    ("op_makes_a_node_of_another_pass", "ops", 1, [3], 1),
    ("op_run_by_a_node_that_does_not_run", "ops", 3, [3], 1),
    ("op_unwatched_without_writing", "ops", 2, [12], "u"),
    ("call_in_another_pass", "calls", 1, [3], 1),
    ("op_in_another_pass", "ops", 1, [1], 1),
    ("op_in_another_call", "ops", 1, [2], 0),
]


def field_attack(section, row, path, value):
    step = copy.deepcopy(BASE)
    place, key = step[section], row
    for position in path:
        place, key = place[key], position
    place[key] = value
    return text_of(lines_of(step))


# --- Events that cannot happen: file name, position, how many events are replaced there, what stands instead.

EVENTS = [
    ("no_phase_before_first_call", 0, 1, []),
    ("phase_inside_an_op", 4, 0, [["phase", 0]]),
    ("call_entered_twice", 12, 0, [["enter", 0]]),
    ("call_ends_inside_a_node", 36, 0, [["node", 1]]),
    ("calls_overlap", 10, 2, [["exit", 0], ["exit", 1]]),
    ("call_entered_outside_its_parent", 1, 2, [["enter", 1], ["enter", 0]]),
    ("call_exit_without_enter", 0, 0, [["exit", 0]]),
    ("call_never_left", 36, 1, []),
    ("call_entered_inside_an_op", 40, 0, [["enter", 1]]),
    ("op_begins_twice", 5, 0, [["begin", 0]]),
    ("op_ends_without_begin", 3, 1, []),
    ("op_ends_twice", 5, 0, [["end", 0]]),
    ("ops_nested", 4, 0, [["begin", 1]]),
    ("op_never_begins", 39, 2, []),
    ("op_never_ends", 40, 1, []),
    ("op_uses_storage_before_alloc", 13, 0, [["phase", 2], ["begin", 4], ["end", 4]]),
    ("op_uses_freed_storage", 39, 0, [["free", 3]]),
    ("output_fresh_but_not_allocated", 7, 1, []),
    ("output_fresh_but_allocated_before", 6, 2, [["alloc", 2], ["begin", 1]]),
    ("output_existing_but_freed", 29, 0, [["free", 5]]),
    ("storage_freed_before_alloc", 2, 0, [["free", 2]]),
    ("storage_freed_twice", 41, 0, [["free", 2]]),
    ("storage_allocated_twice", 41, 0, [["alloc", 2]]),
    ("resize_after_free", 42, 0, [["resize", 7, 0]]),
    ("save_packed_twice", 6, 0, [["pack", 0]]),
    ("save_unpacked_before_pack", 5, 0, [["unpack", 0]]),
    ("save_unpacked_after_release", 29, 0, [["unpack", 0]]),
    ("save_dropped_without_unpack", 20, 0, [["drop", 0], ["drop", 0]]),
    ("save_released_before_pack", 5, 0, [["release", 0]]),
    ("save_released_twice", 29, 0, [["release", 0]]),
    ("node_started_while_running", 19, 0, [["node", 0]]),
    ("node_done_without_start", 18, 0, [["done", 0]]),
    ("node_done_in_wrong_order", 19, 0, [["node", 1], ["done", 0]]),
    ("node_never_done", 26, 1, []),
]


def event_attack(position, removed, inserted):
    step = copy.deepcopy(BASE)
    step["events"][position:position + removed] = inserted
    return text_of(lines_of(step))


# --- The text of the file. Each function gets the valid lines and returns the bytes of the file.


def insert_section(lines, *section):
    return text_of(lines[:-1] + list(section) + lines[-1:])


def replace_line(lines, old, new):
    position = lines.index(old)
    return text_of(lines[:position] + [new] + lines[position + 1:])


def raw_string(lines, raw):
    """The string "fc" with other bytes between its quotes."""
    return text_of(lines).replace(b'"fc"', b'"' + raw + b'"')


def swap_sections(lines):
    start = lines.index(header("sources", 1))
    return text_of(lines[:start] + lines[start + 2:start + 7] + lines[start:start + 2] + lines[start + 7:])


def nested_modules(count):
    step = copy.deepcopy(BASE)
    step["modules"] += [[len(step["modules"]) + i - 1, 2, 3] for i in range(count)]
    return text_of(lines_of(step))


def nested_calls(count):
    step = copy.deepcopy(BASE)
    step["calls"] = [[0, None if i == 0 else i - 1, i, 0, [], []] for i in range(count)]
    return text_of(lines_of(step))


def long_path(length):
    step = copy.deepcopy(BASE)
    step["strings"][2] = "x" * length
    step["modules"] += [[1, 2, 3], [3, 2, 3], [4, 2, 3]]
    return text_of(lines_of(step))


def string_of(length):
    step = copy.deepcopy(BASE)
    step["strings"][2] = "x" * length
    return text_of(lines_of(step))


def long_arg_list():
    step = copy.deepcopy(BASE)
    step["args"][0][0][1] = [0] * 70000
    return text_of(lines_of(step))


def added_row(section, row, *events):
    step = copy.deepcopy(BASE)
    step[section].append(row)
    step["events"] += events
    return text_of(lines_of(step))


TEXTS = {
    # The file as a whole.
    "empty": lambda lines: b"",
    "only_a_line_break": lambda lines: b"\n",
    "only_spaces": lambda lines: b"    \n",
    "other_text": lambda lines: b"hello, world\n",
    "other_kind_of_file": lambda lines: replace_line(lines, FIRST_LINE, '{"tidemark":"plan","version":[1,0]}'),
    "first_line_not_json": lambda lines: replace_line(lines, FIRST_LINE, "{tidemark}"),
    "first_line_without_tidemark": lambda lines: replace_line(lines, FIRST_LINE, '{"version":[1,0]}'),
    "first_line_with_unknown_key": lambda lines: replace_line(lines, FIRST_LINE,
                                                              '{"tidemark":"step","version":[1,0],"x":1}'),
    "version_missing": lambda lines: replace_line(lines, FIRST_LINE, '{"tidemark":"step"}'),
    "version_major_too_high": lambda lines: replace_line(lines, FIRST_LINE, '{"tidemark":"step","version":[2,0]}'),
    "version_major_zero": lambda lines: replace_line(lines, FIRST_LINE, '{"tidemark":"step","version":[0,9]}'),
    "version_is_a_number": lambda lines: replace_line(lines, FIRST_LINE, '{"tidemark":"step","version":1}'),
    "byte_order_mark": lambda lines: b"\xef\xbb\xbf" + text_of(lines),
    "byte_order_mark_inside": lambda lines: replace_line(lines, '"fc"', '\ufeff"fc"'),
    "utf16": lambda lines: text_of(lines).decode().encode("utf-16-le"),
    "missing_final_line_break": lambda lines: text_of(lines)[:-1],
    "garbage_after_end": lambda lines: text_of(lines) + b"garbage\n",
    "blank_line_after_end": lambda lines: text_of(lines) + b"\n",
    "blank_line_inside": lambda lines: replace_line(lines, header("notes", 1), "\n" + header("notes", 1)),
    "two_steps_in_one_file": lambda lines: text_of(lines) * 2,
    "cut_in_a_line_of_300_kib": lambda lines: text_of(lines[:1]) + b'{"section":"' + b"x" * (300 << 10),
    "cut_after_first_line": lambda lines: text_of(lines[:1]),
    "cut_after_a_header": lambda lines: text_of(lines[:lines.index(header("ops", 7)) + 1]),
    "cut_between_rows": lambda lines: text_of(lines[:lines.index(header("ops", 7)) + 3]),
    "cut_in_a_row": lambda lines: text_of(lines[:lines.index(header("ops", 7)) + 3])[:-20],
    "cut_before_end": lambda lines: text_of(lines[:-1]),
    # Sections.
    "section_missing": lambda lines: text_of([line for line in lines if line != header("notes", 1)
                                              and line != compact(BASE["notes"][0])]),
    "section_out_of_order": swap_sections,
    "section_stands_twice": lambda lines: insert_section(lines, header("notes", 0)),
    "section_stands_twice_as_optional": lambda lines: insert_section(
        lines, '{"section":"notes","count":0,"optional":true}'),
    "section_optional_stands_twice": lambda lines: insert_section(
        lines, '{"section":"x","count":0,"optional":true}', '{"section":"x","count":0,"optional":true}'),
    "section_optional_257_times": lambda lines: insert_section(
        lines, *['{"section":"x%d","count":0,"optional":true}' % i for i in range(257)]),
    "section_unknown": lambda lines: insert_section(lines, header("kernels", 0)),
    "section_optional_with_bad_json": lambda lines: insert_section(
        lines, '{"section":"x","count":1,"optional":true}', "[1,"),
    "section_without_name": lambda lines: replace_line(lines, header("notes", 1), '{"count":1}'),
    "section_without_count": lambda lines: replace_line(lines, header("notes", 1), '{"section":"notes"}'),
    "section_with_unknown_key": lambda lines: replace_line(lines, header("notes", 1),
                                                           '{"section":"notes","count":1,"rows":1}'),
    "section_key_stands_twice": lambda lines: replace_line(lines, header("notes", 1),
                                                           '{"section":"notes","count":1,"count":1}'),
    "section_is_null": lambda lines: replace_line(lines, header("notes", 1), "null"),
    "count_too_high": lambda lines: replace_line(lines, header("modules", 3), header("modules", 4)),
    "count_too_low": lambda lines: replace_line(lines, header("modules", 3), header("modules", 2)),
    "count_too_low_in_strings": lambda lines: replace_line(lines, header("strings", 21), header("strings", 20)),
    "count_negative": lambda lines: replace_line(lines, header("modules", 3), header("modules", -1)),
    "count_2_to_40": lambda lines: replace_line(lines, header("events", 42), header("events", 2**40)),
    "count_at_cap_but_no_rows": lambda lines: text_of(lines[:lines.index(header("events", 42))]
                                                      + [header("events", 2**28)]),
    "count_of_meta_above_cap": lambda lines: replace_line(lines, header("meta", 1), header("meta", 2**12 + 1)),
    "count_of_optional_rows_above_cap": lambda lines: insert_section(
        lines, '{"section":"x","count":1048577,"optional":true}'),
    "count_of_strings_above_cap": lambda lines: replace_line(lines, header("strings", 21),
                                                             header("strings", 2**20 + 1)),
    "end_with_rows": lambda lines: replace_line(lines, END, '{"section":"end","count":1}'),
    # JSON.
    "json_cut": lambda lines: replace_line(lines, "[0,2,3]", "[0,2,3"),
    "json_closed_twice": lambda lines: replace_line(lines, "[0,2,3]", "[0,2,3]]"),
    "json_comma_at_end": lambda lines: replace_line(lines, "[0,2,3]", "[0,2,3,]"),
    "json_single_quotes": lambda lines: replace_line(lines, '"fc"', "'fc'"),
    "json_comment": lambda lines: replace_line(lines, "[0,2,3]", "[0,2,3] // fc"),
    "json_two_values_on_a_line": lambda lines: replace_line(lines, "[0,2,3]", "[0,2,3] [0,2,3]"),
    "json_number_leading_zero": lambda lines: replace_line(lines, "[0,2,3]", "[0,02,3]"),
    "json_number_hexadecimal": lambda lines: replace_line(lines, "[0,2,3]", "[0,0x2,3]"),
    "json_deep_nesting": lambda lines: replace_line(lines, "[]", "[" * 1000 + "]" * 1000),
    "json_deep_nesting_in_optional_section": lambda lines: insert_section(
        lines, '{"section":"x","count":1,"optional":true}', '{"a":' * 1000 + "1" + "}" * 1000),
    "json_key_stands_twice_in_optional_section": lambda lines: insert_section(
        lines, '{"section":"x","count":1,"optional":true}', '{"a":1,"a":2}'),
    "json_zero_byte_after_value": lambda lines: replace_line(lines, "[0,2,3]", "[0,2,3]\0hidden"),
    "number_nan": lambda lines: text_of(lines).replace(b"2.5", b"NaN"),
    "number_infinity": lambda lines: text_of(lines).replace(b"2.5", b"Infinity"),
    "number_1e400": lambda lines: text_of(lines).replace(b"2.5", b"1e400"),
    "number_minus_1e400": lambda lines: text_of(lines).replace(b"2.5", b"-1e400"),
    "number_of_100000_digits": lambda lines: text_of(lines).replace(b"2.5", b"9" * 100000),
    # Text.
    "utf8_stray_byte": lambda lines: raw_string(lines, b"f\x80c"),
    "utf8_overlong": lambda lines: raw_string(lines, b"\xc0\xaf"),
    "utf8_surrogate": lambda lines: raw_string(lines, b"\xed\xa0\x80"),
    "utf8_beyond_unicode": lambda lines: raw_string(lines, b"\xf4\x90\x80\x80"),
    "utf8_cut": lambda lines: raw_string(lines, b"\xe2\x82"),
    "escape_lone_high_surrogate": lambda lines: raw_string(lines, b"\\ud800"),
    "escape_lone_low_surrogate": lambda lines: raw_string(lines, b"\\udc00"),
    "escape_unknown": lambda lines: raw_string(lines, b"\\x41"),
    "control_character_in_string": lambda lines: raw_string(lines, b"\x07"),
    "string_not_closed": lambda lines: replace_line(lines, '"fc"', '"fc'),
    "string_longer_than_64_kib": lambda lines: string_of(65537),
    "meta_key_empty": lambda lines: replace_line(lines, compact(BASE["meta"][0]), '["",""]'),
    "meta_value_longer_than_64_kib": lambda lines: replace_line(
        lines, compact(BASE["meta"][0]), compact(["key", "x" * 65537])),
    "meta_key_stands_twice": lambda lines: replace_line(
        replace_line(lines, header("meta", 1), header("meta", 2)).decode().splitlines(), compact(BASE["meta"][0]),
        compact(BASE["meta"][0]) + "\n" + compact(BASE["meta"][0])),
    # Rows that no event speaks of, or the wrong one.
    "call_never_entered": lambda lines: added_row("calls", [2, None, 0, 4, [], []]),
    "save_never_packed": lambda lines: added_row("saves", [1, 0, 1, True]),
    "save_packed_after_free": lambda lines: added_row("saves", [1, 0, 3, True], ["pack", 2]),
    # Depth and length.
    "module_path_longer_than_4_kib": lambda lines: long_path(1100),
    "modules_nested_600_deep": lambda lines: nested_modules(600),
    "calls_nested_600_deep": lambda lines: nested_calls(600),
    "arg_list_of_70000_values": lambda lines: long_arg_list(),
}

# --- Compressed files.

ZSTD = {
    "zstd_cut": lambda lines: compress(text_of(lines))[:-200],
    "zstd_cut_in_header": lambda lines: compress(text_of(lines))[:6],
    "zstd_only_magic": lambda lines: b"\x28\xb5\x2f\xfd",
    "zstd_damaged": lambda lines: damage(compress(text_of(lines), "--check")),
    "zstd_garbage_after_frame": lambda lines: compress(text_of(lines)) + b"garbage",
    "zstd_second_frame_with_more": lambda lines: compress(text_of(lines)) + compress(b"more\n"),
    "zstd_window_too_large": lambda lines: compress(text_of(lines) * 3, "--long=27", "--no-content-size"),
    "zstd_bomb_one_long_line": lambda lines: compress(text_of(lines[:1]) + b" " * (64 << 20), "-19"),
    "zstd_bomb_size_not_declared": lambda lines: compress(text_of(lines[:1]) + b" " * (64 << 20), "-19",
                                                          "--no-content-size"),
    "zstd_bomb_many_rows": lambda lines: compress(
        text_of(lines[:1] + [header("meta", 0), header("strings", 1 << 20)]) + (b'"' + b"x" * 60 + b'"\n') * (1 << 19), "-19"),
    "zstd_bomb_inside_a_bomb": lambda lines: compress(compress(b" " * (64 << 20), "-19")),
}


def damage(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x55]) + data[middle + 1:]


def main():
    lines = lines_of(BASE)
    if sys.argv[1:2] == ["--base"]:
        pathlib.Path(sys.argv[2]).write_bytes(text_of(lines))
        return
    files = {name + ".step.jsonl": field_attack(*edit) for name, *edit in FIELDS}
    files |= {name + ".step.jsonl": event_attack(*edit) for name, *edit in EVENTS}
    files |= {name + ".step.jsonl": make(lines) for name, make in TEXTS.items()}
    files |= {name + ".step.jsonl.zst": make(lines) for name, make in ZSTD.items()}
    folder = pathlib.Path(__file__).parent / "data"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        if old.name not in files:
            old.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    print(f"{len(files)} files, {sum(map(len, files.values())):,} bytes")


if __name__ == "__main__":
    main()

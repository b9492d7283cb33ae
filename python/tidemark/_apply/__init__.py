"""Applying a plan to a model. docs/apply.md is for users; here, one file has one thing:

apply: putting a plan on a model and taking it back; words: a plan as it is applied; checks: whether it suits a model; ranks: whether
all ranks hold the same; forwards: detours for single modules; units: what happens when one is called; calls: which call that
is; region: PyTorch's checkpoint; modes: saving and recomputing op by op, and drift; rehearsal: what only a first
call is asked; buffers: restoring what a recompute changes;
sizes: inputs other than planned; tally, audit: what really ran; fit: all in one line.
"""

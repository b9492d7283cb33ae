"""A Hugging Face model under a plan: capture, plan, save, apply, audit, remove."""

import tempfile
from pathlib import Path

import tidemark
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(
    hidden_size=128, intermediate_size=352, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, vocab_size=512, use_cache=False
)
model = LlamaForCausalLM(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ids = torch.randint(0, config.vocab_size, (4, 128))


def train_step():
    optimizer.zero_grad()
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()


step = tidemark.capture(train_step, model, optimizer)
loose = tidemark.plan(step, budget="1GB", device="cpu")
budget = (loose.unplanned_peak_bytes + loose.smallest_peak_bytes) // 2
result = tidemark.plan(step, budget=budget, device="cpu")
print(f"plain training peaks at {loose.unplanned_peak_bytes:,} B, the smallest plan at {loose.smallest_peak_bytes:,} B")
print(f"for {budget:,} B: {result.termination}, peak {result.peak_bytes:,} B, {len(result.plan)} units")

with tempfile.TemporaryDirectory() as folder:
    result.plan.save(Path(folder) / "plan.json")
    plan = tidemark.Plan.load(Path(folder) / "plan.json")  # as another process would

plan.apply(model)
for _ in range(2):
    train_step()
audit = tidemark.audit(train_step, model)
print(audit)
tidemark.remove(model)
print("as planned" if audit.agrees else "not as planned")

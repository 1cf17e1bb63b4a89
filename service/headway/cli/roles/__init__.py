"""Commands that run one role: control plane, agent, pipeline, collectors; and what they need."""

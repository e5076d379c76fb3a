"""The parts of the demo's orchestrator; ../demo is their table of contents."""

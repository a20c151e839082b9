"""The boot of an engine, from its log: phases, receipts, failures. Pure: takes lines and ticks."""

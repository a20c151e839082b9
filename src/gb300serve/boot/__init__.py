"""What an engine's log says about its boot: phases, receipts, failures. Pure: takes lines and ticks."""

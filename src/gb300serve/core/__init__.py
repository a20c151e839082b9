"""What every layer may use: errors, diagnostics, words, values, text, clock."""

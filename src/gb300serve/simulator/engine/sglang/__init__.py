"""What the stand-in prints and answers as SGLang."""

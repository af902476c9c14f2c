//! What all programs share: files, pipes, colour, exit codes.

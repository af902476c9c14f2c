//! Frames of plain structs between hook, parent and trace.

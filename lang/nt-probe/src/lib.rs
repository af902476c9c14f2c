//! The probe language: text to checked program to IR.

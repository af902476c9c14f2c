//! Containers of device code: ELF, fatbins, cubins, and what they hold.

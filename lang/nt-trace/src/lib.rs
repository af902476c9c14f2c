//! What compiled probes, manifests and traces hold.

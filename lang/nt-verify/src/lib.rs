//! Holds woven PTX against its original, knowing neither the weaver nor the probe.

//! A probe program that is ready to be woven, and what manifests say of it.

use nt_ir::program::{MapKind, Program};

/// A prepared program.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// What weavers take.
    pub prepared: nt_ir::Prepared,
    name: String,
    hash: String,
}

impl Probe {
    /// Runs the passes over `program`. `compiled` is its `.ntp`, whose hash manifests name.
    ///
    /// # Errors
    /// The IR is refused, as it came (`input`) or after a pass of ours.
    pub fn new(program: Program, compiled: &[u8]) -> Result<Probe, nt_ir::Broken> {
        let (name, hash) = (program.name.clone(), blake3::hash(compiled).to_hex().to_string());
        let prepared = nt_ir::prepare(program, nt_ir::Options::default())?;
        Ok(Probe { prepared, name, hash })
    }

    /// Whether a program saves into a stream.
    pub fn streams(program: &Program) -> bool {
        program.maps.iter().any(|map| map.kind == MapKind::Stream)
    }

    /// What its program is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// As manifests have it.
    pub fn manifest(&self) -> nt_trace::ntm::Probe {
        nt_trace::ntm::Probe { name: self.name.clone(), hash: self.hash.clone() }
    }

    /// The IR as text, for reproducers.
    pub fn text(&self) -> String {
        nt_ir::text::print(&self.prepared.program)
    }
}

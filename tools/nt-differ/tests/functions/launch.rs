//! A launch of one kernel of a module, and what a probe finds in it.

use nt_differ::device::{self, Given, Job, Text};
use nt_differ::probed::{self, Probed};
use nt_differ::records;
use nt_differ::sidecar::Shape;
use nt_ir::launch::Conditions;
use nt_vgpu::Options;
use std::collections::BTreeMap;

pub(crate) const HEAD: &str =
    ".version 8.0\n.target sm_80\n.address_size 64\n.file 1 \"src/k.cu\"\n.file 2 \"src/f.h\"\n";

/// The probe in all kernels of a module.
pub(crate) fn weave(text: &Text<'_>, probe: &str) -> Probed {
    let prepared = probed::compile(probe, "test").unwrap_or_else(|why| panic!("{probe}: {why}"));
    Probed::weave(text, &prepared, Conditions::NONE).unwrap_or_else(|why| panic!("{probe}: {why}"))
}

/// A launch in blocks of `threads`, on a buffer.
pub(crate) struct Launch<'t> {
    pub(crate) ptx: &'t str,
    pub(crate) kernel: &'t str,
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    pub(crate) buffer: Vec<u8>,
}

impl Launch<'_> {
    fn job(&self) -> Job {
        let shape =
            Shape { grid: [self.blocks, 1, 1], block: [self.threads, 1, 1], shared: 0, cooperative: false };
        let args = vec![Given::Buffer(self.buffer.clone())];
        Job { kernel: self.kernel.into(), shape, args, variables: Vec::new() }
    }

    /// Runs a probe; each cell of each table, as `@name[key, …]`, with what all multiprocessors added. The memory that
    /// the kernel leaves must be what it leaves without the probe, in the plain schedule and in some that keep lanes
    /// apart, which must all tell the same.
    pub(crate) fn cells(&self, probe: &str) -> BTreeMap<String, i64> {
        let ptx = format!("{HEAD}{}", self.ptx);
        let (text, job) = (Text::load(&ptx).unwrap_or_else(|why| panic!("{why}")), self.job());
        let woven = weave(&text, probe);
        let refused = woven.woven.refused.iter().find(|(kernel, _)| kernel == self.kernel);
        assert_eq!(refused, None, "{probe}");
        let mut all: Option<BTreeMap<String, i64>> = None;
        for seed in [None, Some(5), Some(6)] {
            let options = Options { seed, sms: 3, max_steps: 1 << 22 };
            let plain = device::run(&text.program, &job, &options, None).unwrap();
            let ran = device::run(&woven.program, &job, &options, Some(&woven));
            let ran = ran.unwrap_or_else(|why| panic!("{probe}: {why}\n{}", woven.woven.text));
            device::same(&plain, &ran).unwrap_or_else(|why| panic!("{probe}: {why}"));
            let mut cells: BTreeMap<String, i64> = BTreeMap::new();
            let tables = woven.kernel(self.kernel).into_iter().flat_map(|kernel| &kernel.tables);
            for table in tables.filter(|table| table.func != nt_ir::program::Func::Gone) {
                for ((_, names), sum) in records::table(&woven, &job, &ran, &table.name).unwrap() {
                    let key = match names.as_slice() {
                        [] => format!("@{}", table.name),
                        names => format!("@{}[{}]", table.name, names.join(", ")),
                    };
                    *cells.entry(key).or_default() += sum as i64;
                }
            }
            match &all {
                None => all = Some(cells),
                Some(before) => assert_eq!(*before, cells, "{probe}, seed {seed:?}"),
            }
        }
        all.unwrap()
    }

    #[track_caller]
    pub(crate) fn check(&self, probe: &str, expected: &[(&str, i64)]) {
        let cells = self.cells(probe);
        let expected: BTreeMap<String, i64> =
            expected.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
        assert_eq!(cells, expected, "{probe}");
    }
}

pub(crate) fn words(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

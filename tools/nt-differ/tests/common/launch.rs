//! One kernel, a block of threads and a buffer, on the software GPU with a probe: what each cell of its tables holds.
#![allow(dead_code, reason = "not every test of those that share it needs all")]

use nt_differ::device::{self, Given, Job, Text};
use nt_differ::probed::{self, Probed};
use nt_differ::records;
use nt_differ::sidecar::Shape;
use nt_ir::launch::Conditions;
use nt_vgpu::Options;
use std::collections::BTreeMap;

pub(crate) const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.file 1 \"src/k.cu\"\n";

/// A launch of kernel `k` in a block of `threads`, on a buffer.
pub(crate) struct Launch<'t> {
    /// Its text behind [`HEAD`], or with a head of its own.
    pub(crate) ptx: &'t str,
    pub(crate) threads: u32,
    pub(crate) buffer: Vec<u8>,
}

impl Launch<'_> {
    /// Runs a probe; each cell of each table, as `@name[key, …]`, with what all multiprocessors added. The memory that
    /// the kernel leaves must be what it leaves without the probe, in the plain schedule and one that keeps lanes apart.
    pub(crate) fn cells(&self, probe: &str) -> BTreeMap<String, i64> {
        let ptx = self.text();
        let text = Text::load(&ptx).unwrap_or_else(|why| panic!("{why}"));
        let prepared = probed::compile(probe, "test").unwrap_or_else(|why| panic!("{probe}: {why}"));
        let woven = Probed::weave(&text, &prepared, Conditions::NONE);
        let woven = woven.unwrap_or_else(|why| panic!("{probe}: {why}"));
        assert_eq!(woven.woven.refused, [], "{probe}");
        if woven.kernel("k").is_none() {
            // No site: the text is as it was.
            assert_eq!(woven.woven.text, ptx, "{probe}");
            return BTreeMap::new();
        }
        let job = Job {
            kernel: "k".into(),
            shape: Shape { grid: [1, 1, 1], block: [self.threads, 1, 1], shared: 0, cooperative: false },
            args: vec![Given::Buffer(self.buffer.clone())],
            variables: Vec::new(),
        };
        let mut all: Option<BTreeMap<String, i64>> = None;
        for seed in [None, Some(5)] {
            let options = Options { seed, sms: 3, max_steps: 1 << 20 };
            let plain = device::run(&text.program, &job, &options, None).unwrap();
            let ran = device::run(&woven.program, &job, &options, Some(&woven));
            let ran = ran.unwrap_or_else(|why| panic!("{probe}: {why}\n{}", woven.woven.text));
            device::same(&plain, &ran).unwrap_or_else(|why| panic!("{probe}: {why}"));
            let mut cells: BTreeMap<String, i64> = BTreeMap::new();
            for table in woven.kernel("k").into_iter().flat_map(|kernel| &kernel.tables) {
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

    fn text(&self) -> String {
        let head = if self.ptx.starts_with(".version") { "" } else { HEAD };
        format!("{head}{}", self.ptx)
    }

    /// Why a probe cannot be woven: slug, the text at its place, what is said of that, and the way out.
    pub(crate) fn refused(&self, probe: &str) -> Option<(&'static str, String, String)> {
        let ptx = self.text();
        let text = Text::load(&ptx).unwrap_or_else(|why| panic!("{why}"));
        let prepared = probed::compile(probe, "test").unwrap_or_else(|why| panic!("{probe}: {why}"));
        let woven = Probed::weave(&text, &prepared, Conditions::NONE);
        let woven = woven.unwrap_or_else(|why| panic!("{probe}: {why}")).woven;
        let (_, why) = woven.refused.into_iter().next()?;
        Some((why.slug, why.span.of(&ptx).to_owned(), [&[why.label], &*why.helps].concat().join("; ")))
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

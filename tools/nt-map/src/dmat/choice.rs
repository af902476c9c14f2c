//! Which stream is drawn: one kernel's, with a time for all lanes and an address for each.

use crate::catalogue::{Catalogue, Chosen, Store};
use crate::cli::Dmat;
use crate::input::Source;
use crate::names::Names;
use crate::walk::Origin;
use anyhow::bail;
use nt_trace::ntm::{Kernel, Map, Site, Type, Unit};
use std::collections::BTreeSet;

/// What is drawn.
pub(super) struct Choice {
    /// The kernel's mangled name.
    pub(super) kernel: String,
    /// Its names, as titles show them.
    pub(super) names: Names,
    /// The map's name.
    pub(super) map: String,
    /// The process.
    pub(super) process: String,
    /// Classes of instructions; all where there are none.
    pub(super) only: Vec<String>,
    /// All launches that are chosen, or the first?
    pub(super) together: bool,
    time: String,
}

/// Where things stand in a map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    pub(super) time: usize,
    pub(super) address: usize,
    /// How many the time has.
    pub(super) bits: u32,
}

impl Choice {
    /// From what the options leave; `Err` in it says why nothing is left.
    pub(super) fn of(
        opts: &Dmat,
        catalogue: &Catalogue,
        sources: &[Source],
        chosen: &Chosen,
    ) -> anyhow::Result<Result<Choice, String>> {
        let (mut kernels, mut maps, mut processes) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let (mut classes, mut any) = (BTreeSet::new(), false);
        for (entry, store, count) in catalogue.wanted(chosen) {
            let Store::Map(map) = store else { continue };
            any = true;
            if count.batches == 0 || columns(map, &opts.time).is_none() {
                continue;
            }
            kernels.insert(entry.kernel.name.as_str());
            maps.insert(map.name.as_str());
            processes.insert(sources.get(entry.source).map_or("", |source| source.process.as_str()));
            let sites = entry.kernel.probed().map_or(&[][..], |kernel: &Kernel| &kernel.sites);
            classes.extend(sites.iter().filter_map(class));
        }
        let list = |names: &BTreeSet<&str>| names.iter().take(5).copied().collect::<Vec<_>>().join("`, `");
        let (Some(kernel), Some(map), Some(process)) = (kernels.first(), maps.first(), processes.first())
        else {
            let why = format!(
                "no stream with a column `{}` and addresses of lanes is chosen: `nt-run -p dmat` makes one",
                opts.time
            );
            return Ok(Err(if any { why } else { "no map is chosen".to_owned() }));
        };
        for (names, what, option) in
            [(&kernels, "kernel", "-k"), (&maps, "map", "--map"), (&processes, "process", "--process")]
        {
            if names.len() > 1 {
                bail!("a picture is of one {what}, and there are `{}`: choose by `{option}`", list(names));
            }
        }
        if let Some(unknown) = opts.only.iter().find(|word| !classes.contains(word.as_str())) {
            return Ok(Err(format!("no site of class `{unknown}`, there are: `{}`", list(&classes))));
        }
        Ok(Ok(Choice {
            kernel: (*kernel).to_owned(),
            names: Names::of(kernel),
            map: (*map).to_owned(),
            process: (*process).to_owned(),
            only: opts.only.clone(),
            together: opts.select.launch.is_some(),
            time: opts.time.clone(),
        }))
    }

    /// The columns to read, if this is what is drawn.
    pub(super) fn columns(&self, origin: &Origin<'_>) -> Option<Columns> {
        let Some(Store::Map(map)) = origin.store() else { return None };
        if origin.kernel.name != self.kernel || map.name != self.map {
            return None;
        }
        columns(map, &self.time)
    }

    /// For each site of the kernel: are its accesses drawn?
    pub(super) fn sites(&self, origin: &Origin<'_>) -> Vec<bool> {
        let sites = origin.kernel.probed().map_or(&[][..], |kernel| &kernel.sites);
        let drawn = |site: &Site| {
            self.only.is_empty() || class(site).is_some_and(|class| self.only.iter().any(|o| o == class))
        };
        sites.iter().map(drawn).collect()
    }

    /// If this is a record of when each warp of the kernel started, on its multiprocessor's clock: the columns of the
    /// start and of the multiprocessor.
    pub(super) fn starts(&self, origin: &Origin<'_>) -> Option<(usize, usize)> {
        let Some(Store::Map(map)) = origin.store() else { return None };
        let column = |name: &str| map.columns.iter().position(|c| c.name == name && is_integer(c.ty));
        let one_a_warp = map.unit == Unit::Warp && map.stream.is_none() && map.slots.is_none();
        let is_record = origin.kernel.name == self.kernel && one_a_warp;
        is_record.then_some((column("start")?, column("cu")?))
    }
}

/// The class of a site's instruction: `load`.
fn class(site: &Site) -> Option<&str> {
    site.kind.strip_prefix("inst:")
}

fn is_integer(ty: Type) -> bool {
    !matches!(ty, Type::F32 | Type::F64 | Type::Bool)
}

fn columns(map: &Map, time: &str) -> Option<Columns> {
    map.stream.as_ref()?;
    let columns = || map.columns.iter().enumerate();
    let address = columns().position(|(index, c)| c.ty == Type::Ptr && map.is_of_lanes(index))?;
    let time =
        columns().position(|(index, c)| c.name == time && is_integer(c.ty) && !map.is_of_lanes(index))?;
    let bits = map.columns.get(time)?.ty.size() * 8;
    Some(Columns { time, address, bits })
}

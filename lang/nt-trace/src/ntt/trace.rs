//! Frames put into relation: data with its launch, a launch with its kernel and the kernel's manifest.
//!
//! A file's kernels are kept, its launches only as far back as data may follow, so that a trace of any length is read
//! in bounded memory.

use super::cells::Cells;
use super::frames::{Content, Frame, Frames, Item, Trouble};
use super::records::{Mismatch, Records};
use super::saves::Saves;
use super::stream::{Part, Reader, Unfit};
use crate::ntm::{self, Manifest};
use nt_wire::frame;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Iterates over what a file tells.
#[derive(Debug, Clone)]
pub struct Trace<'b> {
    frames: Frames<'b>,
    kernels: BTreeMap<u32, Arc<KnownKernel>>,
    launches: BTreeMap<u64, (Arc<KnownKernel>, frame::Launch)>,
}

/// A kernel of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKernel {
    /// Its number in the file.
    pub id: u32,
    /// Compute capability, 90 for 9.0.
    pub arch: u32,
    /// Its mangled name.
    pub name: String,
    /// Its manifest; `None` for a kernel that is not probed.
    pub manifest: Result<Option<Manifest>, ntm::Error>,
}

impl KnownKernel {
    /// What was woven into it.
    pub fn probed(&self) -> Option<&ntm::Kernel> {
        self.manifest.as_ref().ok()?.as_ref()?.kernels.iter().find(|kernel| kernel.name == self.name)
    }

    /// The maps that its data frames are of.
    pub fn maps(&self) -> &[ntm::Map] {
        self.probed().map_or(&[], |kernel| &kernel.maps)
    }

    /// The tables that its data frames are of, counted on behind the maps.
    pub fn tables(&self) -> &[ntm::Table] {
        self.probed().map_or(&[], |kernel| &kernel.tables)
    }
}

/// What a file tells, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'b> {
    /// Who wrote the file.
    Start(frame::Start),
    /// A kernel whose launches may follow.
    Kernel(Arc<KnownKernel>),
    /// A launch, whose data may follow.
    Launch(Arc<KnownKernel>, frame::Launch),
    /// One map of one launch, a record a unit.
    Batch(Batch<'b>),
    /// One array with a capacity of one launch: [`Batch::saves`].
    Saves(Batch<'b>),
    /// A part of a stream of one launch.
    Stream(StreamBatch<'b>),
    /// One table of one launch, or of all of them.
    Cells(CellBatch<'b>),
    /// A line of the coverage table.
    Count(frame::Count),
    /// A line of words.
    Note(frame::Note),
    /// The file ended as it should.
    End(frame::End),
    /// Something is wrong with the file; what follows is told all the same.
    Trouble(Trouble),
}

/// The records of one map of one launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch<'b> {
    /// Where its frame begins.
    pub at: u64,
    /// Whose launch it was.
    pub kernel: Arc<KnownKernel>,
    /// Which launch.
    pub launch: frame::Launch,
    /// Which of [`KnownKernel::maps`]; inside their range.
    pub index: usize,
    /// Units that the launch has.
    pub units: u64,
    /// Units that there was room for.
    pub capacity: u64,
    /// The records.
    pub data: &'b [u8],
}

impl<'b> Batch<'b> {
    /// What is known of the map. Every batch that a [`Trace`] gives has one.
    pub fn map(&self) -> Option<&ntm::Map> {
        self.kernel.maps().get(self.index)
    }

    /// Rows and columns.
    ///
    /// # Errors
    /// The data does not fit the map.
    pub fn records(&self) -> Result<Records<'b>, Mismatch> {
        let mismatch = Mismatch {
            bytes: self.data.len() as u64,
            units: self.units,
            capacity: self.capacity,
            stride: self.map().map_or(0, |map| map.stride),
        };
        let map = self.map().ok_or(mismatch)?;
        Records::new(map, self.units, self.capacity, self.data)
    }

    /// What each unit saved, of an array with a capacity.
    ///
    /// # Errors
    /// The data does not fit the map, or that has a record a unit.
    pub fn saves(&self) -> Result<Saves<'b>, Mismatch> {
        let Batch { units, capacity, data, .. } = *self;
        let bytes = data.len() as u64;
        let map = self.map().ok_or(Mismatch { bytes, units, capacity, stride: 0 })?;
        Saves::new(map, units, capacity, data)
    }

    /// Has the data as many units as the launch?
    ///
    /// # Errors
    /// It has not.
    pub fn agree(&self) -> Result<(), Disagreement> {
        self.map().map_or(Ok(()), |map| agree(map.unit, &self.launch, self.units))
    }
}

/// A part of what one stream of one launch holds. Parts are told apart by what they begin with, and come in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamBatch<'b> {
    /// Where its frame begins.
    pub at: u64,
    /// Whose launch it was.
    pub kernel: Arc<KnownKernel>,
    /// Which launch.
    pub launch: frame::Launch,
    /// Which of [`KnownKernel::maps`], one that is a stream.
    pub index: usize,
    /// The part, as [`nt_wire::stream::Head::decode`] takes it.
    pub data: &'b [u8],
}

impl<'b> StreamBatch<'b> {
    /// What is known of the map. Every batch that a [`Trace`] gives has one.
    pub fn map(&self) -> Option<&ntm::Map> {
        self.kernel.maps().get(self.index)
    }

    /// The part, taken apart and held against map and launch, and how to read its events.
    ///
    /// # Errors
    /// It does not fit the map or the launch.
    pub fn open(&self) -> Result<(Part<'b>, Reader), Unfit> {
        let (Some(kernel), Some(map)) = (self.kernel.probed(), self.map()) else {
            return Err(Unfit::NoStream);
        };
        let reader = Reader::new(kernel, map, &self.launch)?;
        Ok((reader.part(self.data)?, reader))
    }
}

/// The cells of one table: those of one launch, or what all launches of the kernel in a context have added up to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellBatch<'b> {
    /// Where its frame begins.
    pub at: u64,
    /// Whose cells they are.
    pub kernel: Arc<KnownKernel>,
    /// Which launch; `None` of a persistent table.
    pub launch: Option<frame::Launch>,
    /// The device's ordinal in the process.
    pub device: u32,
    /// Which of [`KnownKernel::tables`]; inside their range.
    pub index: usize,
    /// Units that the launch has, or multiprocessors of the device.
    pub units: u64,
    /// Units that there was room for.
    pub capacity: u64,
    /// The cells.
    pub data: &'b [u8],
}

impl<'b> CellBatch<'b> {
    /// What is known of the table. Every batch that a [`Trace`] gives has one.
    pub fn table(&self) -> Option<&ntm::Table> {
        self.kernel.tables().get(self.index)
    }

    /// The cells, typed.
    ///
    /// # Errors
    /// The data does not fit the table.
    pub fn cells(&self) -> Result<Cells<'b>, Mismatch> {
        let mismatch = Mismatch {
            bytes: self.data.len() as u64,
            units: self.units,
            capacity: self.capacity,
            stride: self.table().map_or(0, |table| table.stride),
        };
        Cells::new(self.table().ok_or(mismatch)?, self.units, self.capacity, self.data)
    }

    /// Has the data as many units as the launch, if it is of one?
    ///
    /// # Errors
    /// It has not.
    pub fn agree(&self) -> Result<(), Disagreement> {
        match (self.table(), &self.launch) {
            (Some(table), Some(launch)) => agree(table.unit, launch, self.units),
            _ => Ok(()),
        }
    }
}

/// A data frame that does not go with its launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    /// It has another number of units.
    #[error("{units} units, and launch {launch} has {expected}")]
    Units {
        /// Those of the data.
        units: u64,
        /// The launch's number.
        launch: u64,
        /// Those of the launch.
        expected: u64,
    },
    /// The launch is impossible.
    #[error("launch {launch} has more units than there are numbers")]
    TooMany {
        /// Its number.
        launch: u64,
    },
}

/// Has a launch so many units?
pub(super) fn agree(unit: ntm::Unit, launch: &frame::Launch, units: u64) -> Result<(), Disagreement> {
    match unit.count(launch.grid, launch.block, launch.sms) {
        Some(expected) if expected == units => Ok(()),
        Some(expected) => Err(Disagreement::Units { units, launch: launch.number, expected }),
        None => Err(Disagreement::TooMany { launch: launch.number }),
    }
}

impl<'b> Trace<'b> {
    /// How many launches may lie between a launch and its data.
    pub const LAUNCHES: usize = 1 << 16;

    /// Reads `bytes` from their beginning.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self::over(Frames::new(bytes))
    }

    /// The same without the checksums of map data: for lists of what is there.
    pub fn skim(bytes: &'b [u8]) -> Self {
        Self::over(Frames::skim(bytes))
    }

    fn over(frames: Frames<'b>) -> Self {
        Trace { frames, kernels: BTreeMap::new(), launches: BTreeMap::new() }
    }

    fn event(&mut self, frame: Frame<'b>) -> Event<'b> {
        let Frame { at, sequence, content } = frame;
        let stray = Event::Trouble(Trouble::Stray { at, sequence });
        match content {
            Content::Start(start) => {
                // Where files were joined, numbers begin anew.
                self.kernels.clear();
                self.launches.clear();
                Event::Start(start)
            }
            Content::Count(count) => Event::Count(count),
            Content::Note(note) => Event::Note(note),
            Content::End(end) => Event::End(end),
            Content::Kernel(kernel) => {
                let known = Arc::new(KnownKernel::of(kernel));
                self.kernels.insert(known.id, Arc::clone(&known));
                Event::Kernel(known)
            }
            Content::Launch(launch) => {
                let Some(kernel) = self.kernels.get(&launch.kernel) else {
                    return stray;
                };
                let kernel = Arc::clone(kernel);
                self.launches.insert(launch.number, (Arc::clone(&kernel), launch.clone()));
                if self.launches.len() > Self::LAUNCHES {
                    self.launches.pop_first();
                }
                Event::Launch(kernel, launch)
            }
            Content::Data(fixed, data) => self.data(at, &fixed, data).unwrap_or(stray),
        }
    }

    /// Data with what it is of; `None` if that is not in the file.
    fn data(&self, at: u64, fixed: &frame::Data, data: &'b [u8]) -> Option<Event<'b>> {
        let (kernel, launch) = if fixed.launch == frame::Data::PERSISTENT {
            (self.kernels.get(&fixed.kernel)?, None)
        } else {
            let (kernel, launch) = self.launches.get(&fixed.launch)?;
            (kernel, Some(launch.clone()))
        };
        if kernel.id != fixed.kernel {
            return None;
        }
        let kernel = Arc::clone(kernel);
        let (index, frame::Data { device, units, capacity, .. }) = (fixed.map as usize, *fixed);
        let Some(behind) = index.checked_sub(kernel.maps().len()) else {
            let launch = launch?;
            if kernel.maps().get(index)?.stream.is_some() {
                return Some(Event::Stream(StreamBatch { at, kernel, launch, index, data }));
            }
            let has_slots = kernel.maps().get(index)?.slots.is_some();
            let batch = Batch { at, kernel, launch, index, units, capacity, data };
            return Some(if has_slots { Event::Saves(batch) } else { Event::Batch(batch) });
        };
        let index = behind;
        if kernel.tables().get(index)?.persistent != launch.is_none() {
            return None;
        }
        let batch = CellBatch { at, kernel, launch, device, index, units, capacity, data };
        Some(Event::Cells(batch))
    }
}

impl<'b> Iterator for Trace<'b> {
    type Item = Event<'b>;

    fn next(&mut self) -> Option<Event<'b>> {
        Some(match self.frames.next()? {
            Item::Frame(frame) => self.event(frame),
            Item::Trouble(trouble) => Event::Trouble(trouble),
        })
    }
}

impl KnownKernel {
    fn of(kernel: frame::Kernel) -> Self {
        let frame::Kernel { id, arch, name, manifest } = kernel;
        let manifest = if manifest.is_empty() { Ok(None) } else { Manifest::parse(&manifest).map(Some) };
        KnownKernel { id, arch, name, manifest }
    }
}

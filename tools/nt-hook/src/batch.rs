//! Launches that are fetched together, in the steps that this takes.
//!
//! ```text
//! first   the front of each segment: all of it where no stream is; else its maps, and the cursors
//! then    of each stream what was used, as much at a time as the stage holds; drops first, if there may be some
//! ```
//!
//! Each step copies, clears what it has copied, and has the device write the stage's word; behind the word its frames
//! are written and the next one begins. A segment goes back to the ring as soon as its last frame is written. Frames of
//! one launch stand together in the trace.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use nt_wire::stream::{Head, SLOT};

use crate::driver::Driver;
use crate::layout::{self, Layout};
use crate::pool::{FREE, LAUNCHED, Launched, Pool};
use crate::process::{Process, lock};
use crate::stage::{Failure, Range, Stage};
use crate::time::now_ns;
use crate::{notes, record};

/// Slots of a stream that go into one frame; a multiple of every chunk.
const PIECE: u64 = (4 << 20) / SLOT;
/// What a stage must have behind the fronts for streams to get on.
const ROOM: usize = (PIECE * SLOT) as usize;

/// See the module.
pub(crate) struct Batch {
    /// Oldest first.
    launches: Vec<Fetched>,
    /// How many of them have given their segments back.
    given_back: usize,
    /// Up to where fronts take the stage.
    fronts: usize,
    /// What is to be written, in this order.
    todo: VecDeque<Item>,
    /// Of that, what is being fetched, and where it lies in the stage.
    round: Vec<(Item, usize)>,
    /// Drops that are there, of the stream that is next.
    drops: Vec<u8>,
    /// What the stage's word says when the step's copies are there.
    pub(crate) word: u64,
    /// When its calls were made.
    pub(crate) begun_ns: u64,
}

/// A launch in a batch.
pub(crate) struct Fetched {
    /// Its slot in the pool.
    pub(crate) slot: usize,
    /// What it is.
    pub(crate) launched: Launched,
    /// Where the front of its segment lies in the stage; `None` if the twin did not run.
    at: Option<usize>,
    layout: Layout,
    /// Not all of it could be written.
    lost: bool,
}

/// Something to write, of the launch of that number in the batch.
#[derive(Clone, Copy)]
enum Item {
    /// Its frame, and those of its maps.
    Launch(usize),
    /// Some of a stream's drops, to be written with its first part.
    Drops { launch: usize, map: usize, offset: u64, bytes: usize },
    /// A part of a stream.
    Part { launch: usize, map: usize, head: Head },
}

/// Launches from the oldest on that fit a stage together, or the first alone, and how large a stage that takes.
pub(crate) fn choose(ready: Vec<(usize, u32, Launched)>, pool: &Pool, most: usize) -> (Vec<Fetched>, usize) {
    let (mut launches, mut end, mut room) = (Vec::new(), 0, 0);
    for (slot, state, launched) in ready {
        let used = state == LAUNCHED;
        let layout = if used { launched.layout(pool) } else { None }.unwrap_or_default();
        let streams = layout.front != layout.bytes;
        // Of a segment without streams all is fetched, so that neighbours leave in one copy.
        let len = match used {
            false => 0,
            true if streams => layout.front as usize,
            true => launched.segment.len as usize,
        };
        let with = if streams { ROOM } else { room };
        if end != 0 && end + len + with > most {
            break;
        }
        launches.push(Fetched { slot, launched, at: used.then_some(end), layout, lost: false });
        (end, room) = (end + len, with);
    }
    (launches, end + room)
}

impl Fetched {
    fn has_streams(&self) -> bool {
        self.layout.front != self.layout.bytes
    }

    /// The front in the segment, and where it goes.
    fn range(&self) -> Option<Range> {
        let segment = self.launched.segment;
        let len = if self.has_streams() { self.layout.front } else { segment.len };
        Some(Range { offset: segment.offset, at: self.at?, len: len as usize })
    }
}

impl Batch {
    /// Makes the calls of the first step.
    pub(crate) fn begin(
        launches: Vec<Fetched>,
        stage: &mut Stage,
        pool: &Pool,
        driver: &Driver,
    ) -> Result<Batch, Failure> {
        let ranges: Vec<Range> = launches.iter().filter_map(Fetched::range).collect();
        let fronts = ranges.last().map_or(0, |last| last.at + last.len);
        let word = if ranges.is_empty() {
            stage.value()
        } else {
            stage.wait_for(driver, pool, launches.iter().filter(|fetched| fetched.at.is_some()))?;
            stage.take(driver, pool, &ranges)?
        };
        Ok(Batch {
            launches,
            given_back: 0,
            fronts,
            todo: VecDeque::new(),
            round: Vec::new(),
            drops: Vec::new(),
            word,
            begun_ns: now_ns(),
        })
    }

    /// Launches whose segments are still out.
    pub(crate) fn out(&self) -> usize {
        self.launches.len() - self.given_back
    }

    /// The word was seen: writes what is there, and makes the calls of the next step. True when there is none.
    pub(crate) fn step(
        &mut self,
        stage: &mut Stage,
        pool: &Pool,
        driver: &Driver,
        process: &Process,
    ) -> Result<bool, Failure> {
        if self.round.is_empty() && self.todo.is_empty() {
            let complete_ns = now_ns();
            for (index, fetched) in self.launches.iter_mut().enumerate() {
                fetched.launched.frame.complete_ns = complete_ns;
                plan(index, fetched, stage, &mut self.todo);
            }
        }
        for (item, at) in std::mem::take(&mut self.round) {
            self.write(item, at, stage, pool, process);
        }
        let (mut ranges, mut at) = (Vec::new(), self.fronts);
        while let Some(&item) = self.todo.front() {
            let Some(range) = self.range(item, at) else {
                self.todo.pop_front();
                // Behind what has yet to come, it waits for its turn.
                if ranges.is_empty() {
                    self.write(item, 0, stage, pool, process);
                } else {
                    self.round.push((item, 0));
                }
                continue;
            };
            if at + range.len > stage.len() {
                break;
            }
            self.todo.pop_front();
            self.round.push((item, at));
            at += range.len;
            ranges.push(range);
        }
        if ranges.is_empty() {
            self.give_back(self.launches.len(), pool);
            return Ok(true);
        }
        self.word = stage.take(driver, pool, &ranges)?;
        self.begun_ns = now_ns();
        Ok(false)
    }

    /// What an item needs copied; `None` for what is in the front.
    fn range(&self, item: Item, at: usize) -> Option<Range> {
        let (launch, from, len) = match item {
            Item::Launch(_) => return None,
            Item::Drops { launch, map, offset, bytes } => {
                (launch, self.launches.get(launch)?.layout.parts.get(map)?.drops + offset, bytes)
            }
            Item::Part { launch, map, head } => {
                let part = self.launches.get(launch)?.layout.parts.get(map)?;
                if head.slots == 0 {
                    return None;
                }
                (launch, part.offset + head.first_slot * SLOT, (head.slots * SLOT) as usize)
            }
        };
        let segment = self.launches.get(launch)?.launched.segment;
        Some(Range { offset: segment.offset + from, at, len })
    }

    fn write(&mut self, item: Item, at: usize, stage: &Stage, pool: &Pool, process: &Process) {
        let (Item::Launch(index) | Item::Drops { launch: index, .. } | Item::Part { launch: index, .. }) =
            item;
        if let Item::Launch(index) = item {
            // All before it is written.
            self.give_back(index, pool);
        }
        let Some(fetched) = self.launches.get_mut(index) else { return };
        let mut trace = lock(&process.trace);
        let Some(trace) = trace.as_mut() else { return };
        let launched = &fetched.launched;
        let written = match item {
            Item::Launch(_) => {
                let values = pool.values(fetched.slot, launched.twin.wanted_params);
                let front = fetched.at.unwrap_or_default();
                record::launch(trace, launched, &fetched.layout, values, |offset, len| {
                    stage.bytes(front + offset, len)
                })
            }
            Item::Drops { bytes, .. } => {
                self.drops.extend_from_slice(stage.bytes(at, bytes));
                Ok(())
            }
            Item::Part { map, head, .. } => {
                let drops = std::mem::take(&mut self.drops);
                notes::EVENTS.add(record::dropped(&drops));
                let slots = stage.bytes(at, (head.slots * SLOT) as usize);
                record::part(trace, launched, &fetched.layout, map, head, &drops, slots)
            }
        };
        if let Err(error) = written {
            fetched.lost = true;
            notes::say(format!("data was lost, the trace could not be written: {error}"));
        }
    }

    /// Segments go back in the order in which they were handed out, up to that launch.
    fn give_back(&mut self, to: usize, pool: &Pool) {
        for fetched in self.launches.iter().take(to).skip(self.given_back) {
            if fetched.at.is_some() && !fetched.lost {
                fetched.launched.collected();
            }
            if let Some(slot) = pool.slots.get(fetched.slot) {
                slot.state.store(FREE, Ordering::Release);
            }
            pool.ring.give_back(fetched.launched.segment);
        }
        self.given_back = self.given_back.max(to);
    }
}

/// What of a launch is to be fetched and written, as its cursors say.
fn plan(index: usize, fetched: &Fetched, stage: &Stage, todo: &mut VecDeque<Item>) {
    let Some(front) = fetched.at else { return };
    todo.push_back(Item::Launch(index));
    if !fetched.has_streams() {
        return;
    }
    for (map, (shape, part)) in fetched.launched.twin.maps.iter().zip(&fetched.layout.parts).enumerate() {
        let Some(shape) = shape.stream else { continue };
        let cursor = stage.bytes(front + part.cursor as usize, 8);
        let claims = cursor.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let (units, cap, chunk) = (part.units, part.capacity, shape.chunk);
        let dropped = Head::may_have_dropped(units, claims, chunk, cap);
        let drops_bytes = if dropped { units * 4 } else { 0 };
        let mut offset = 0;
        while offset < drops_bytes {
            let bytes = (drops_bytes - offset).min(ROOM as u64);
            todo.push_back(Item::Drops { launch: index, map, offset, bytes: bytes as usize });
            offset += bytes;
        }
        let used = Head::used(units, claims, chunk, cap);
        let parts = used.div_ceil(PIECE).max(1);
        for number in 0..parts {
            let first_slot = number * PIECE;
            let head = Head {
                claims,
                units,
                cap,
                first_slot,
                slots: (used - first_slot).min(PIECE),
                drops_bytes: if number == 0 { drops_bytes } else { 0 },
                chunk,
                part: number as u32,
                parts: parts as u32,
            };
            todo.push_back(Item::Part { launch: index, map, head });
        }
    }
}

impl Launched {
    /// As it was laid out when it was launched.
    fn layout(&self, pool: &Pool) -> Option<Layout> {
        let frame = &self.frame;
        layout::of_launch(self.twin, frame.grid, frame.block, frame.sms, pool.ring.most())
    }

    /// All of it is in the trace.
    fn collected(&self) {
        match self.home {
            // It is collected when what it has counted in tables is, too.
            Some(home) if !home.collected.load(Ordering::Acquire) => {
                home.fetched.fetch_add(1, Ordering::Relaxed);
            }
            _ => _ = self.kernel.collected.fetch_add(1, Ordering::Relaxed),
        }
    }
}

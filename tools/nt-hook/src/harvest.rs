//! Fetching tables at the end of what they belong to: context, module, process. A twin that is tied to a module's
//! variables is waited for in the same way, whether it has tables or not.
//!
//! In steps of the collector, none of which waits: first no launch may be in the middle of its calls; then our stream
//! must stand behind all launches that were made ([`crate::behind`]); then the buffers are copied in it, behind which the
//! device writes the stage's word; then frames are written.

use std::sync::atomic::Ordering;

use crate::context::Context;
use crate::driver::{Driver, NOT_READY};
use crate::home::Home;
use crate::process::{Process, lock};
use crate::stage::{Failure, Stage, check};
use crate::{notes, record};

/// So much is copied at a time, or one home's tables if they are larger.
const MOST: u64 = 64 << 20;

/// Homes whose tables are being fetched.
pub(crate) struct Harvest {
    homes: Vec<&'static Home>,
    step: Step,
}

enum Step {
    /// Launches may be in the middle of their calls, or a stream cannot be stood behind.
    Before,
    /// Copies are under way; what the word will say.
    Copying(Stage, u64),
}

impl Harvest {
    /// Of as many homes as are fetched at a time; all of one context.
    pub(crate) fn new(homes: Vec<&'static Home>) -> Self {
        let mut bytes = 0;
        let fits = |home: &&Home| {
            let first = bytes == 0;
            bytes += home.tables.bytes;
            first || bytes <= MOST
        };
        Harvest { homes: homes.into_iter().take_while(fits).collect(), step: Step::Before }
    }

    /// Does what can be done without waiting; true when all is done. The context is current.
    pub(crate) fn step(
        &mut self,
        context: &Context,
        driver: &Driver,
        process: &Process,
    ) -> Result<bool, Failure> {
        match &self.step {
            Step::Before => {
                let Some(behind) = context.made_behind() else { return Ok(true) };
                for home in &self.homes {
                    home.retire();
                }
                if !self.homes.iter().all(|home| home.quiet()) || !behind.stand_behind_all(context, driver)? {
                    return Ok(false);
                }
                let bytes: u64 = self.homes.iter().map(|home| home.tables.bytes).sum();
                let mut stage = Stage::new(driver, bytes as usize)?;
                let copied = self.copy(&mut stage, behind.stream, driver);
                match copied {
                    Ok(value) => self.step = Step::Copying(stage, value),
                    Err(failure) => {
                        stage.release(driver);
                        return Err(failure);
                    }
                }
                Ok(false)
            }
            Step::Copying(stage, value) => {
                if !stage.done(driver, *value)? {
                    let Some(behind) = context.made_behind() else { return Ok(true) };
                    // SAFETY: our own stream.
                    let code = unsafe { (driver.cuStreamQuery)(behind.stream) };
                    return check("cuStreamQuery", if code == NOT_READY { 0 } else { code }).map(|()| false);
                }
                self.write(stage, process);
                if let Step::Copying(stage, _) = std::mem::replace(&mut self.step, Step::Before) {
                    stage.release(driver);
                }
                for home in &self.homes {
                    home.end();
                    if home.tables.bytes != 0 {
                        context.spare_back(home.tables);
                    }
                }
                Ok(true)
            }
        }
    }

    /// It cannot be done.
    pub(crate) fn give_up(self, failure: &Failure) {
        for home in &self.homes {
            home.end();
            if home.launches.load(Ordering::Relaxed) != 0 && home.tables.bytes != 0 {
                notes::say(format!("tables of `{}` were lost: {failure}", home.kernel.name));
            }
        }
    }

    fn copy(&self, stage: &mut Stage, stream: crate::Opaque, driver: &Driver) -> Result<u64, Failure> {
        let mut at = 0;
        for home in &self.homes {
            let bytes = home.tables.bytes as usize;
            if bytes != 0 {
                stage.copy(driver, at, home.tables.base, bytes, stream)?;
            }
            at += bytes;
        }
        stage.signal(driver, stream)
    }

    fn write(&self, stage: &Stage, process: &Process) {
        let mut trace = lock(&process.trace);
        let Some(trace) = trace.as_mut() else { return };
        let mut at = 0;
        for home in &self.homes {
            let launches = home.launches.load(Ordering::Acquire);
            if launches != 0 && home.tables.bytes != 0 {
                match record::tables(trace, home, |offset, len| stage.bytes(at + offset, len)) {
                    Ok(()) => {
                        // What a launch has saved elsewhere counts too.
                        let whole = if home.twin.has_segment() {
                            home.fetched.load(Ordering::Relaxed)
                        } else {
                            launches
                        };
                        home.kernel.collected.fetch_add(whole, Ordering::Relaxed);
                        home.collected.store(true, Ordering::Release);
                    }
                    Err(error) => {
                        notes::say(format!("data was lost, the trace could not be written: {error}"));
                    }
                }
            }
            at += home.tables.bytes as usize;
        }
    }
}

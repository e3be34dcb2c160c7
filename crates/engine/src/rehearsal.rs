//! A rehearsal: a configuration run in simulated time until it ends.

use crate::configuration::Configuration;
use crate::context::BoxContext;
use crate::engine::Engine;
use crate::files::Input;
use crate::limits::MAX_REHEARSAL_ROUNDS;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use click_lang::Diagnostic;
use core::cell::Cell;
use element::{Descriptor, Environment, IoError, Reader, Writer};
use packet::Timestamp;
use router::Options;

/// Where simulated time begins, and the seed of all randomness: a rehearsal is the same every time.
const START: Timestamp = Timestamp::from_parts(1_000_000_000, 0);
const SEED: u64 = 1;

/// The environment of a rehearsal: shipped files, and a console.
struct DryRunEnvironment {
    context: Rc<BoxContext>,
    rounds: Cell<u64>,
}

/// Takes what is written, which is for nobody.
struct Nowhere;

impl Writer for Nowhere {
    fn write(&mut self, _: &[u8]) -> Result<(), IoError> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), IoError> {
        Ok(())
    }
}

impl Environment for DryRunEnvironment {
    fn now(&self) -> Timestamp {
        START
    }

    fn steady(&self) -> Timestamp {
        START
    }

    fn seed(&self) -> u64 {
        SEED
    }

    fn console(&self, text: &str) {
        self.context.events.borrow_mut().say("", text, START);
    }

    fn open(&self, path: &str) -> Result<Box<dyn Reader>, IoError> {
        Input::open(&self.context.files.borrow(), path)
    }

    fn create(&self, _path: &str, _append: bool) -> Result<Box<dyn Writer>, IoError> {
        Ok(Box::new(Nowhere))
    }

    fn wait(&self, _: &[(Descriptor, bool, bool)], _: Option<Timestamp>) -> Vec<Descriptor> {
        Vec::new()
    }

    /// Asked once a round: some configurations never end, nor let time pass.
    fn is_interrupted(&self) -> bool {
        self.rounds.set(self.rounds.get() + 1);
        self.rounds.get() > MAX_REHEARSAL_ROUNDS
    }
}

impl Engine {
    /// Runs a configuration to its end and keeps it as it is then; the lines that it said.
    pub(crate) fn rehearse(
        &mut self,
        name: &str,
        text: &str,
        seconds: u32,
        batch: u32,
    ) -> Result<Vec<u8>, Vec<Diagnostic>> {
        let environment = Rc::new(DryRunEnvironment { context: self.context.clone(), rounds: Cell::new(0) });
        let options =
            Options { batch: batch as usize, simulated: Some(START), seed: Some(SEED), ..Options::default() };
        self.context.events.borrow_mut().keep();
        let made =
            Configuration::make_in(&self.context, environment, name, text, options).map(|(mut made, _)| {
                made.router.run(Some(START + Timestamp::from_parts(seconds.into(), 0)));
                made.router.stop();
                made
            });
        let said = self.context.events.borrow_mut().take_kept();
        let made = made?;
        self.configurations.retain(|configuration| configuration.name != name);
        self.configurations.push(made);
        Ok(said)
    }
}

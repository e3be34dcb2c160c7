//! Drains and restarts the fabrics.

use super::claims::{Claim, Conflict};
use super::parallel::in_parallel;
use super::state::Supervisor;
use crate::error::OperationError;
use crate::fabric::FabricLink;
use crate::limits::CHANGE_TIMEOUT;
use crate::store::DRAINING;
use api::{BoxName, DrainStatus, EventKind, FabricRestart, Subject, with_causes};
use protocol::fabric::{Asked, Phase, orders};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Supervisor {
    /// Refuses new boxes and starts while the fabric is drained.
    pub(super) fn refuse_while_draining(&self) -> Result<(), OperationError> {
        match self.is_draining() {
            true => Err(OperationError::Draining),
            false => Ok(()),
        }
    }

    /// Whether new boxes and starts are refused.
    pub(crate) fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::SeqCst)
    }

    /// Takes no new boxes and starts none, or takes them again. Boxes that run go on, and restart by their policy. It is
    /// stored: the next daemon goes on with it.
    pub fn drain_fabric(&self, drain: bool) -> Result<DrainStatus, OperationError> {
        let running = self.boxes_in_fabric()?;
        self.set_draining(drain)?;
        Ok(DrainStatus { draining: drain, running })
    }

    fn set_draining(&self, drain: bool) -> Result<(), OperationError> {
        self.0.store().set_counter(DRAINING, drain.into())?;
        if self.0.draining.swap(drain, Ordering::SeqCst) != drain {
            let message = match drain {
                true => "the fabric takes no new boxes and starts none",
                false => "the fabric takes new boxes and starts them again",
            };
            self.0.journal.note(EventKind::FabricDraining, Subject::Daemon, message);
        }
        Ok(())
    }

    /// The boxes that run, are suspended, or are about to run.
    fn boxes_in_fabric(&self) -> Result<Vec<BoxName>, OperationError> {
        let runtimes = self.0.fabrics.runtimes(Asked::None)?;
        let is_up = |phase| !matches!(phase, Phase::Created | Phase::Stopped | Phase::Crashed);
        let up = runtimes.into_iter().filter(|runtime| is_up(runtime.phase));
        Ok(up.map(|runtime| runtime.name).collect())
    }

    /// Stops all boxes, ends the fabric, has another one started, and brings everything back from the store. Boxes that
    /// were started by hand run again, also if the fabric was drained, which then ends.
    ///
    /// # Errors
    ///
    /// Boxes run, and the restart is not forced; or an operation is in progress. Nothing has changed then. If no other
    /// fabric can be started, the daemon goes on trying.
    pub fn restart_fabric(&self, is_forced: bool) -> Result<FabricRestart, OperationError> {
        self.refuse_in_use(is_forced)?;
        // Keeps new boxes away while the operations in progress end.
        let was_draining = self.0.draining.swap(true, Ordering::SeqCst);
        let result = self.restart_unused(is_forced);
        self.0.draining.store(was_draining, Ordering::SeqCst);
        let restarted = result?;
        let message =
            format!("the fabric was restarted on request with all boxes in {:.1} ms", restarted.away_ms);
        self.0.journal.note(EventKind::FabricRestarted, Subject::Daemon, message);
        self.set_draining(false)?;
        Ok(restarted)
    }

    /// Refuses a restart of the fabric that stops boxes, unless it is forced. Returns the boxes.
    fn refuse_in_use(&self, is_forced: bool) -> Result<Vec<BoxName>, OperationError> {
        let running = self.boxes_in_fabric()?;
        match is_forced || running.is_empty() {
            true => Ok(running),
            false => Err(OperationError::FabricInUse(running.len())),
        }
    }

    /// Replaces the fabrics while no operation is in progress; the next ones wait.
    fn restart_unused(&self, is_forced: bool) -> Result<FabricRestart, OperationError> {
        let daemon = Subject::Daemon;
        let everything = || vec![Claim::change(Subject::Daemon)];
        let taken = self.0.claims.take(&daemon, CHANGE_TIMEOUT, &everything);
        let _claims = taken.map_err(|Conflict { subject, .. }| OperationError::Changing(subject))?;
        let running = self.refuse_in_use(is_forced)?;
        let start = Instant::now();
        self.stop_boxes(&running);
        // What the old fabric reports is lost with it.
        self.fetch_events();
        self.0.fabrics.all().iter().try_for_each(|link| self.replace_fabric(link))?;
        let away_ms = start.elapsed().as_secs_f64() * 1e3;
        let up = self.boxes_in_fabric()?;
        let (boxes, missing) = running.into_iter().partition(|name| up.contains(name));
        Ok(FabricRestart { boxes, missing, away_ms })
    }

    /// Stops boxes gracefully, several at a time. That they are to run stays stored.
    fn stop_boxes(&self, names: &[BoxName]) {
        in_parallel(names, |name| self.bring_down(name, true));
    }

    /// Ends a fabric, and connects to another one.
    fn replace_fabric(&self, link: &Arc<FabricLink>) -> Result<(), OperationError> {
        // An error means that the fabric has ended already.
        let _ = link.ask(orders::End {});
        link.disconnect();
        self.0.fabrics.connector().end_fabric(link.number());
        self.connect_first(link).inspect_err(|failure| {
            let message = format!("{} can't be restarted: {}", self.fabric_name(link), with_causes(failure));
            self.0.journal.note(EventKind::FabricLost, Subject::Daemon, message);
            let (supervisor, link) = (self.clone(), link.clone());
            // Without a thread, the next attempt is made when the daemon is started again.
            let _ =
                std::thread::Builder::new().name("fabric".into()).spawn(move || supervisor.reconnect(&link));
        })
    }
}

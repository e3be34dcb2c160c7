//! Checks configurations, each in a box of its own that is then discarded.

use super::lifecycle::with_source;
use super::managed_box::{Known, ManagedBox};
use super::state::Supervisor;
use crate::error::{OperationError, RequestError};
use crate::fabric::PendingOrder;
use api::{
    Check, CheckReply, ConfigurationName, CoreCount, CreateBox, Diagnostic, File, ImageDigest, Owner,
    Severity, Size, Time,
};
use protocol::fabric::{
    CheckLimit, CheckOutcome, Configuration, ConfigurationVersion, FabricError, INSTALL_TIMEOUT, orders,
};

/// The check of a configuration that goes on in the fabric.
#[derive(Debug)]
pub(super) struct BegunCheck {
    order: PendingOrder<orders::Check>,
    source: Option<String>,
}

impl Supervisor {
    /// Checks a configuration without running it.
    pub fn check(&self, request: &Check) -> Result<CheckReply, OperationError> {
        super::boxes::check_sizes(&request.configuration, &request.files)?;
        let ports = request.ports.map_or(boundary::limits::MAX_PORTS, usize::from);
        if ports > boundary::limits::MAX_PORTS {
            return Err(RequestError::TooManyPorts(ports).into());
        }
        let source = request.source.as_deref();
        let diagnostics = self.check_in_box(
            &Owner::default(),
            (None, Known::default()),
            (&request.configuration, &request.files),
            ports,
            source,
        )?;
        Ok(CheckReply { diagnostics })
    }

    /// Checks the configuration of a box, and returns an error if it has errors.
    pub(super) fn check_for(
        &self,
        definition: &CreateBox,
        known: Known,
        text: &str,
        files: &[File],
    ) -> Result<(), OperationError> {
        self.finish_check(self.begin_check_for(definition, known, text, files)?)
    }

    /// Whether the limits of checks also hold for the first installation of a box, so that it needs no check before: the box
    /// has no more memory, and no more time.
    pub(super) fn is_start_limited(&self, definition: &CreateBox) -> bool {
        let limits = self.0.check_limits;
        limits.time >= INSTALL_TIMEOUT && limits.memory >= definition.memory.0
    }

    /// Checks the configuration of a new box that was started without a check, after the start has failed, and returns an
    /// error if the configuration has errors. A check adds nothing to other failures: the end of the fabric, a start that
    /// took as long as a check may take, and a box that was removed or stopped meanwhile.
    pub(super) fn check_failed_start(
        &self,
        managed: &ManagedBox,
        failure: &OperationError,
    ) -> Result<(), OperationError> {
        let is_about_configuration = matches!(
            failure,
            OperationError::Refused(_)
                | OperationError::Fabric(FabricError::Broken(..) | FabricError::Create(..))
        );
        let (is_wanted, definition) = {
            let inner = managed.inner();
            (inner.running && !inner.removed, inner.definition.clone())
        };
        if !is_about_configuration || !is_wanted {
            return Ok(());
        }
        let configurations = self.configurations_of(managed)?;
        let checked = configurations.iter().try_for_each(|configuration| {
            self.check_for(&definition, Known::default(), &configuration.text, &configuration.files)
        });
        match checked {
            Err(refused @ OperationError::Refused(_)) => Err(refused),
            // A check that fails itself says less than the start.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Begins the check of the configuration of a box, as by [`check_for`](Self::check_for).
    /// [`finish_check`](Self::finish_check) waits for it.
    pub(super) fn begin_check_for(
        &self,
        definition: &CreateBox,
        known: Known,
        text: &str,
        files: &[File],
    ) -> Result<BegunCheck, OperationError> {
        let (ports, source) = (definition.ports.len(), definition.source.clone());
        let known = (definition.image_digest(), known);
        let shape = (ports, definition.cores);
        let order = self.begin_check(&definition.owner, known, (text, files), shape)?;
        Ok(BegunCheck { order, source })
    }

    /// Waits for a check, and returns an error if the configuration has errors.
    pub(super) fn finish_check(
        &self,
        BegunCheck { order, source }: BegunCheck,
    ) -> Result<(), OperationError> {
        let found = self.diagnostics_of(order, source.as_deref())?;
        match found.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            true => Err(OperationError::Refused(found)),
            false => Ok(()),
        }
    }

    /// A box's diagnostics of a configuration.
    fn check_in_box(
        &self,
        owner: &Owner,
        known: (Option<&ImageDigest>, Known),
        configuration: (&str, &[File]),
        ports: usize,
        source: Option<&str>,
    ) -> Result<Vec<Diagnostic>, OperationError> {
        let shape = (ports, CoreCount::default());
        self.diagnostics_of(self.begin_check(owner, known, configuration, shape)?, source)
    }

    fn begin_check(
        &self,
        owner: &Owner,
        (image, known): (Option<&ImageDigest>, Known),
        (text, files): (&str, &[File]),
        (ports, cores): (usize, CoreCount),
    ) -> Result<PendingOrder<orders::Check>, OperationError> {
        let configuration = Configuration {
            name: ConfigurationName::main(),
            version: ConfigurationVersion { installed: Time::now(), swaps: 0 },
            text: text.into(),
            files: files.to_vec(),
            destinations: known.destinations.to_vec(),
            parameters: known.parameters.to_vec(),
        };
        let ports = u8::try_from(ports).unwrap_or(u8::MAX);
        let limits = Some(self.0.check_limits);
        let (image_digest, faces) = (image.copied(), known.faces.to_vec());
        let order = orders::Check { configuration, ports, limits, image: image_digest, cores, faces };
        let link = self.fabric_of(owner)?;
        self.load_image(&link, image)?;
        link.begin(order)
    }

    /// The diagnostics of a check. If the configuration crashes the box or takes too long, this becomes a diagnostic.
    fn diagnostics_of(
        &self,
        order: PendingOrder<orders::Check>,
        source: Option<&str>,
    ) -> Result<Vec<Diagnostic>, OperationError> {
        let found = match order.wait()? {
            CheckOutcome::Accepted(found) | CheckOutcome::Rejected(found) => found,
            CheckOutcome::Failed(message) => vec![failed(message, None)],
            CheckOutcome::Exceeded(limit) => vec![self.exceeded(limit)],
        };
        Ok(with_source(found, source))
    }

    /// The diagnostic of a check that was ended because of a limit.
    fn exceeded(&self, limit: CheckLimit) -> Diagnostic {
        let limits = self.0.check_limits;
        let (excess, option) = match limit {
            CheckLimit::Time => (format!("took longer than {} s", limits.time.as_secs_f64()), "--check-time"),
            CheckLimit::Memory => {
                (format!("needed more than {} of memory", Size(limits.memory)), "--check-memory")
            }
        };
        let hint = format!(
            "make the configuration or its files smaller, or start the daemon with a higher {option}"
        );
        failed(format!("the check of the configuration {excess} and was ended"), Some(hint))
    }
}

/// The diagnostic of a check that failed.
fn failed(message: String, hint: Option<String>) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        file: None,
        line: None,
        column: None,
        message,
        hint,
        related: Vec::new(),
    }
}

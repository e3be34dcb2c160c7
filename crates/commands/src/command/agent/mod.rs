//! `clickbox agent`: the process that holds the sessions with the OpenFlow controllers of a fabric's switches.

mod certificates;
mod error;
mod filter;
mod line;
mod remote_switch;
mod run;

pub(crate) use certificates::{CertificateFiles, CertificateFilesError};
pub(crate) use error::AgentError;
pub(crate) use run::{Arguments, run};

//! The files with the certificates for controllers over TLS, as options of the launcher, the daemon and the agent.

use crate::error::FileError;
use clap::Args;
use daemon::{SecretError, open_secret};
use openflow::connections::{Certificates, CertificatesError};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{error, fmt, fs};

/// The largest file that is read: a chain has some kilobytes.
const MAX_FILE: u64 = 1 << 20;

/// Files for controllers over TLS.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CertificateFiles {
    /// Certificate that switches show to OpenFlow controllers over TLS, with its chain, in PEM
    #[arg(long, value_name = "FILE", requires_all = ["controller_key", "controller_authority"])]
    controller_certificate: Option<PathBuf>,
    /// Private key of that certificate, in PEM. Refused if other users of the host can read it
    #[arg(long, value_name = "FILE", requires = "controller_certificate")]
    controller_key: Option<PathBuf>,
    /// Certificates of the authority that controllers over TLS must have theirs from, in PEM
    #[arg(long, value_name = "FILE", requires = "controller_certificate")]
    controller_authority: Option<PathBuf>,
}

/// Why the certificates for controllers can't be used.
#[derive(Debug)]
pub(crate) enum CertificateFilesError {
    /// A file can't be read.
    File(FileError),
    /// The private key can't be read, or other users can use it.
    Secret(SecretError),
    /// Their contents can't be used.
    Contents(CertificatesError),
}

impl fmt::Display for CertificateFilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Secret(error) => error.fmt(f),
            Self::Contents(error) => error.fmt(f),
        }
    }
}

impl error::Error for CertificateFilesError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::File(error) => error.source(),
            Self::Secret(error) => error.source(),
            Self::Contents(error) => error.source(),
        }
    }
}

impl CertificateFiles {
    /// Reads the files; `None` if none are named.
    pub(crate) fn load(&self) -> Result<Option<Certificates>, CertificateFilesError> {
        let Self {
            controller_certificate: Some(certificate),
            controller_key: Some(key),
            controller_authority: Some(authority),
        } = self
        else {
            return Ok(None);
        };
        let read = |path: &Path| {
            let failed = |error| CertificateFilesError::File(FileError::new(path, error));
            bounded(fs::File::open(path).map_err(failed)?).map_err(failed)
        };
        let secret = open_secret(key).map_err(CertificateFilesError::Secret)?;
        let secret =
            bounded(secret).map_err(|error| CertificateFilesError::File(FileError::new(key, error)))?;
        Certificates::from_pem(&read(certificate)?, &secret, &read(authority)?)
            .map(Some)
            .map_err(CertificateFilesError::Contents)
    }

    /// The options that name the same files, for a process with another current folder.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = OsString> {
        let files = [
            ("--controller-certificate=", &self.controller_certificate),
            ("--controller-key=", &self.controller_key),
            ("--controller-authority=", &self.controller_authority),
        ];
        files.into_iter().filter_map(|(option, path)| {
            let path = path.as_ref()?;
            // It fails only for an empty path, or without a current folder; then reading the file fails too.
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            let mut argument = OsString::from(option);
            argument.push(path);
            Some(argument)
        })
    }
}

fn bounded(file: fs::File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

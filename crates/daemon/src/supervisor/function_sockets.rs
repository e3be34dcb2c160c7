//! The sockets of services whose instances are functions in containers and other processes.
//!
//! Each has a folder `functions/NAME` beside the socket of the daemon, with the socket and a token. Only the user of the daemon
//! can enter it; a container gets it mounted. The daemon binds the socket and hands it to the fabric, which accepts functions
//! also without a daemon. The token stays the same as long as the folder does.

use crate::error::OperationError;
use crate::service_error::ServiceError;
use api::{ServiceName, SwitchName};
use protocol::function::TOKEN_BYTES;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::rand::{GetRandomFlags, getrandom};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Functions that may wait until the fabric accepts them.
const BACKLOG: i32 = 64;

/// The services whose sockets a fabric has.
#[derive(Debug)]
pub(super) struct FunctionSockets {
    /// The folder with a folder for each service.
    folder: Option<PathBuf>,
    served: Mutex<BTreeMap<ServiceName, SwitchName>>,
}

impl FunctionSockets {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, served: Mutex::default() }
    }

    /// The services that are served, with their switches.
    pub(super) fn served(&self) -> MutexGuard<'_, BTreeMap<ServiceName, SwitchName>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The socket of a service.
    pub(super) fn path(&self, service: &ServiceName) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(service.as_str()).join("socket"))
    }

    /// Opens the socket of a service, in place of the one that is there. Returns its token too.
    pub(super) fn open(&self, service: &ServiceName) -> Result<(OwnedFd, [u8; TOKEN_BYTES]), OperationError> {
        let folder = self.folder.as_ref().ok_or(ServiceError::NoFunctionFolder)?;
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| match error.raw_os_error() {
                Some(code) if code == Errno::NAMETOOLONG.raw_os_error() => {
                    OperationError::from(ServiceError::LongSocketPath(path))
                }
                _ => OperationError::system("make the socket of the service", error),
            }
        };
        make_folder(folder).map_err(failed(folder))?;
        let own = folder.join(service.as_str());
        make_folder(&own).map_err(failed(&own))?;
        let token = token(&own).map_err(failed(&own))?;
        let path = own.join("socket");
        Ok((listener(&path).map_err(failed(&path))?, token))
    }

    /// Removes the sockets and tokens of services other than these: an earlier daemon ended while it made them.
    pub(super) fn retain(&self, wanted: &BTreeSet<ServiceName>) {
        let Some(folder) = &self.folder else { return };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<ServiceName>().ok());
        names.filter(|name| !wanted.contains(name)).for_each(|name| self.remove(&name));
    }

    /// Removes the socket of a service, its token, and the folder if it has nothing else.
    pub(super) fn remove(&self, service: &ServiceName) {
        let Some(folder) = &self.folder else { return };
        let own = folder.join(service.as_str());
        // What is not there needs no removal, and what a user has put there stays.
        for file in ["socket", "token"] {
            let _ = fs::remove_file(own.join(file));
        }
        let _ = fs::remove_dir(own);
    }
}

/// Makes a folder that only this user can enter.
fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// The token in a folder, which is made if there is none.
fn token(folder: &Path) -> io::Result<[u8; TOKEN_BYTES]> {
    let path = folder.join("token");
    let is_token = |text: &[u8]| text.iter().all(u8::is_ascii_hexdigit);
    if let Ok(found) = fs::read(&path)
        && let Ok(token) = <[u8; TOKEN_BYTES]>::try_from(found.trim_ascii_end())
        && is_token(&token)
    {
        return Ok(token);
    }
    let mut random = [0u8; TOKEN_BYTES / 2];
    if getrandom(&mut random, GetRandomFlags::empty())? != random.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let token = <[u8; TOKEN_BYTES]>::try_from(digits.as_bytes()).unwrap_or([b'0'; TOKEN_BYTES]);
    let new = folder.join("token.new");
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new);
    file?.write_all(format!("{digits}\n").as_bytes())?;
    fs::rename(new, path)?;
    Ok(token)
}

/// A listening socket at this path, in place of the one that is there.
fn listener(path: &Path) -> io::Result<OwnedFd> {
    let new = path.with_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrUnix::new(&new)?)?;
    listen(&socket, BACKLOG)?;
    fs::set_permissions(&new, Permissions::from_mode(0o600))?;
    fs::rename(new, path)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_private_and_keeps_its_token() {
        let folder = std::env::temp_dir().join(format!("clickbox-functions-{}", std::process::id()));
        make_folder(&folder).unwrap();
        make_folder(&folder).unwrap();
        let first = token(&folder).unwrap();
        assert_eq!(token(&folder).unwrap(), first);
        assert!(first.iter().all(u8::is_ascii_hexdigit));
        fs::write(folder.join("token"), "short").unwrap();
        let second = token(&folder).unwrap();
        assert_ne!(second, first);
        let path = folder.join("socket");
        let before = listener(&path).unwrap();
        let present = listener(&path).unwrap();
        drop(before);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let modes = [&folder, &path, &folder.join("token")].map(|path| mode(path));
        assert_eq!(modes, [0o700, 0o600, 0o600]);
        assert!(!path.with_extension("new").exists());
        let client =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::connect(&client, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        drop(present);
        // Only what a service has that is gone is removed, and what somebody else has put there stays.
        let sockets = FunctionSockets::new(Some(folder.clone()));
        let [kept, gone, mixed] = ["kept", "gone", "mixed"].map(|name| name.parse::<ServiceName>().unwrap());
        for name in [&kept, &gone, &mixed] {
            sockets.open(name).unwrap();
        }
        fs::write(folder.join("mixed/notes"), "mine").unwrap();
        sockets.retain(&[kept].into());
        let is_there = |path: &str| folder.join(path).exists();
        let found =
            ["kept/socket", "kept/token", "gone", "mixed/token", "mixed/notes", "token"].map(is_there);
        assert_eq!(found, [true, true, false, false, true, true]);
        fs::remove_dir_all(&folder).unwrap();
    }
}

//! The tokens that clients over TCP present: that of the administrator, and those of the users in a file.
//!
//! The file has a table for each user:
//!
//! ```toml
//! [users.alice]
//! owner = "alice"
//! rights = ["read", "operate", "create"]
//! token_sha256 = "0123456789abcdef..."
//!
//! [users.alice.quota]
//! boxes = 10
//! memory = "1G"
//! cpu = 2
//! switches = 4
//! ```
//!
//! Tokens are random, so their digests need no salt. They are compared in constant time.

use super::private::{SecretError, open_secret};
use crate::caller::{Caller, User};
use api::{Owner, Quota, Right, UserName};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// Minimum bytes of the administrator's token: shorter ones can be guessed.
const MIN_TOKEN_LENGTH: usize = 16;

/// Bytes of a new token: too many to guess.
const NEW_TOKEN_BYTES: usize = 32;

/// Maximum bytes of a file of tokens, some 50,000 users: a wrong path must not fill the memory.
const MAX_FILE: u64 = 16 << 20;

/// Why a file of tokens can't be used.
#[derive(Debug)]
pub enum TokensError {
    /// A file can't be read or written.
    File(PathBuf, io::Error),
    /// Other users of the host can use the file, or it can't be opened.
    Secret(SecretError),
    /// The file is longer than any file of tokens.
    TooLarge(PathBuf),
    /// The administrator's token is too short.
    Short(PathBuf),
    /// The file is malformed.
    Syntax(PathBuf, toml::de::Error),
    /// An entry can't be written as TOML.
    Encode(toml::ser::Error),
    /// The digest of a user's token is no SHA-256 digest in hexadecimal.
    Digest(PathBuf, UserName),
    /// A user has a right that no token gives.
    Right(PathBuf, UserName, Right),
    /// The user is in the file already.
    Exists(PathBuf, UserName),
    /// The system has no random numbers.
    Random,
}

impl fmt::Display for TokensError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, _) => write!(f, "can't use {}", path.display()),
            Self::Secret(error) => error.fmt(f),
            Self::TooLarge(path) => write!(f, "{} is too long for a file of tokens", path.display()),
            Self::Short(path) => write!(
                f,
                "the token in {} is too short: it must have at least {MIN_TOKEN_LENGTH} bytes",
                path.display()
            ),
            Self::Syntax(path, _) => write!(f, "{} is no file of tokens", path.display()),
            Self::Encode(_) => f.write_str("the entry can't be written"),
            Self::Digest(path, user) => write!(
                f,
                "{}: token_sha256 of user {user} is no SHA-256 digest, which has 64 hexadecimal digits",
                path.display()
            ),
            Self::Right(path, user, right) => write!(
                f,
                "{}: user {user} can't have the right `{right}`: a token gives read, operate and create",
                path.display()
            ),
            Self::Exists(path, user) => write!(
                f,
                "{} has a user {user} already: choose another name, or remove the entry first",
                path.display()
            ),
            Self::Random => f.write_str("the system has no random numbers"),
        }
    }
}

impl std::error::Error for TokensError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(_, error) => Some(error),
            Self::Syntax(_, error) => Some(error),
            Self::Encode(error) => Some(error),
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::Secret(error) => error.source(),
            Self::TooLarge(_)
            | Self::Short(_)
            | Self::Digest(..)
            | Self::Right(..)
            | Self::Exists(..)
            | Self::Random => None,
        }
    }
}

/// The SHA-256 digest of a token.
type Digest = [u8; 32];

fn digest_of(token: &[u8]) -> Digest {
    let mut bytes = Digest::default();
    bytes.copy_from_slice(digest(&SHA256, token).as_ref());
    bytes
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest that 64 hexadecimal digits are.
fn parse_digest(text: &str) -> Option<Digest> {
    let mut bytes = Digest::default();
    if text.len() != 2 * bytes.len() || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// A user to add to a file of tokens.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// The user's name.
    pub name: UserName,
    /// The owner to whose objects the rights apply.
    pub owner: Owner,
    /// What the user may do with them.
    pub rights: BTreeSet<Right>,
    /// How much the owner may have.
    pub quota: Quota,
}

/// A file of tokens.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    #[serde(default)]
    users: BTreeMap<UserName, Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    owner: Owner,
    rights: BTreeSet<Right>,
    token_sha256: String,
    #[serde(default)]
    quota: Quota,
}

/// What shows that a file has changed.
type Stamp = (u64, i64, i64, u64, u32);

fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec(), found.len(), found.mode()))
}

impl From<SecretError> for TokensError {
    fn from(error: SecretError) -> Self {
        Self::Secret(error)
    }
}

/// Reads a file of tokens, or of one token, which only its owner can use.
fn read_private(path: &Path) -> Result<Vec<u8>, TokensError> {
    let mut bytes = Vec::new();
    let read = open_secret(path)?.take(MAX_FILE + 1).read_to_end(&mut bytes);
    read.map_err(|error| TokensError::File(path.into(), error))?;
    match bytes.len() as u64 > MAX_FILE {
        true => Err(TokensError::TooLarge(path.into())),
        false => Ok(bytes),
    }
}

/// Reads the text of a file of tokens.
fn read_text(path: &Path) -> Result<String, TokensError> {
    let text = String::from_utf8(read_private(path)?);
    text.map_err(|error| TokensError::File(path.into(), io::Error::new(io::ErrorKind::InvalidData, error)))
}

/// The users in a file of tokens, each with the digest of the token.
fn read_users(path: &Path) -> Result<Vec<(Digest, Caller)>, TokensError> {
    let text = read_text(path)?;
    let entries: Entries = toml::from_str(&text).map_err(|error| TokensError::Syntax(path.into(), error))?;
    let mut found = Vec::new();
    for (name, entry) in entries.users {
        let digest = parse_digest(&entry.token_sha256);
        let digest = digest.ok_or_else(|| TokensError::Digest(path.into(), name.clone()))?;
        if let Some(right) = entry.rights.iter().find(|right| !Right::OF_TOKENS.contains(right)) {
            return Err(TokensError::Right(path.into(), name, *right));
        }
        let user = User { name, owner: entry.owner, rights: entry.rights, quota: entry.quota };
        found.push((digest, Caller::User(Arc::new(user))));
    }
    Ok(found)
}

/// The users in a file of tokens, by name.
pub fn users(path: &Path) -> Result<Vec<User>, TokensError> {
    let users = read_users(path)?.into_iter().filter_map(|(_, caller)| match caller {
        Caller::User(user) => Some((*user).clone()),
        Caller::Administrator => None,
    });
    Ok(users.collect())
}

/// Adds a user to a file of tokens, which is created if it does not exist, and returns the user's token. The file has
/// only its digest. The rest of the file, with its comments, stays.
pub fn add_user(path: &Path, user: &NewUser) -> Result<String, TokensError> {
    let failed = |error| TokensError::File(path.into(), error);
    let mut text = match path.try_exists().map_err(failed)? {
        true => read_text(path)?,
        false => String::new(),
    };
    let known: Entries = toml::from_str(&text).map_err(|error| TokensError::Syntax(path.into(), error))?;
    if known.users.contains_key(&user.name) {
        return Err(TokensError::Exists(path.into(), user.name.clone()));
    }
    if let Some(right) = user.rights.iter().find(|right| !Right::OF_TOKENS.contains(right)) {
        return Err(TokensError::Right(path.into(), user.name.clone(), *right));
    }
    let mut random = [0; NEW_TOKEN_BYTES];
    SystemRandom::new().fill(&mut random).map_err(|_| TokensError::Random)?;
    let token = hexadecimal(&random);
    let entry = Entry {
        owner: user.owner.clone(),
        rights: user.rights.clone(),
        token_sha256: hexadecimal(&digest_of(token.as_bytes())),
        quota: user.quota,
    };
    let new = Entries { users: BTreeMap::from([(user.name.clone(), entry)]) };
    let new = toml::to_string(&new).map_err(TokensError::Encode)?;
    if !text.is_empty() {
        text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
    }
    text.push_str(&new);
    // A daemon that reads it meanwhile finds the old file or the new one.
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let written = PathBuf::from(name);
    let write = || {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&written)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&written, path)
    };
    write().map_err(failed)?;
    Ok(token)
}

/// The tokens in force.
#[derive(Debug)]
struct Table {
    entries: Vec<(Digest, Caller)>,
    /// The file as it was read.
    stamp: Option<Stamp>,
}

/// The tokens that a daemon knows. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    administrator: Option<Digest>,
    file: Option<PathBuf>,
    table: Arc<Mutex<Table>>,
}

impl Tokens {
    /// Reads the administrator's token and the file of tokens.
    pub(super) fn read(administrator: Option<&Path>, file: Option<&Path>) -> Result<Self, TokensError> {
        let administrator = match administrator {
            Some(path) => {
                let bytes = read_private(path)?;
                let token = bytes.trim_ascii();
                if token.len() < MIN_TOKEN_LENGTH {
                    return Err(TokensError::Short(path.into()));
                }
                Some(digest_of(token))
            }
            None => None,
        };
        let stamp = file.and_then(stamp);
        let entries = file.map(read_users).transpose()?.unwrap_or_default();
        let table = Arc::new(Mutex::new(Table { entries, stamp }));
        Ok(Self { administrator, file: file.map(Path::to_path_buf), table })
    }

    /// Whether there is a file of tokens, which may change.
    pub(super) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Reads the file again if it has changed, or in any case if `is_forced`. Returns what happened, in a sentence. If
    /// the file can't be used, the tokens stay as they were.
    pub(super) fn refresh(&self, is_forced: bool) -> Option<String> {
        let path = self.file.as_deref()?;
        let now = stamp(path);
        {
            let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
            if table.stamp == now && !is_forced {
                return None;
            }
            // A file that can't be used is reported once.
            table.stamp = now;
        }
        Some(match read_users(path) {
            Ok(entries) => {
                let count = entries.len();
                self.table.lock().unwrap_or_else(PoisonError::into_inner).entries = entries;
                format!("the file of tokens was read again: {count} users")
            }
            Err(error) => format!(
                "the file of tokens can't be used, and the earlier tokens stay valid: {}",
                api::with_causes(&error)
            ),
        })
    }

    /// The caller with a token. Takes the same time for all tokens of a length.
    pub(super) fn caller(&self, presented: &[u8]) -> Option<Caller> {
        let presented = digest_of(presented);
        let administrator = self.administrator.is_some_and(|token| token.ct_eq(&presented).into());
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = u32::MAX;
        for (number, (digest, _)) in (0u32..).zip(&table.entries) {
            let is_equal: Choice = digest.ct_eq(&presented);
            found.conditional_assign(&number, is_equal);
        }
        if administrator {
            return Some(Caller::Administrator);
        }
        usize::try_from(found)
            .ok()
            .and_then(|found| table.entries.get(found))
            .map(|(_, caller)| caller.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("clickbox-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn user(name: &str) -> NewUser {
        let quota = Quota {
            boxes: Some(3),
            memory: Some(api::Size(1 << 30)),
            cpu: "1.5".parse().ok(),
            switches: None,
            uploads: None,
        };
        NewUser {
            name: name.parse().unwrap(),
            owner: "alice".parse().unwrap(),
            rights: [Right::Read, Right::Create].into(),
            quota,
        }
    }

    #[test]
    fn a_new_token_is_known_by_its_digest_only() {
        let folder = folder("tokens");
        let path = folder.join("tokens");
        let first = add_user(&path, &user("alice")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&first) && text.contains("[users.alice]"), "{text}");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, format!("# kept\n{text}")).unwrap();
        let tokens = Tokens::read(None, Some(&path)).unwrap();
        let second = add_user(&path, &user("bob")).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("# kept\n"));
        assert!(matches!(add_user(&path, &user("bob")), Err(TokensError::Exists(..))));
        let name = |token: &str| tokens.caller(token.as_bytes()).map(|caller| caller.to_string());
        assert_eq!((name(&first).as_deref(), name(&second)), (Some("alice"), None));
        assert_eq!(tokens.refresh(false).as_deref(), Some("the file of tokens was read again: 2 users"));
        assert_eq!(tokens.refresh(false), None);
        assert_eq!((name(&first).as_deref(), name(&second).as_deref()), (Some("alice"), Some("bob")));
        assert_eq!(name(&first[1..]), None);
        let Some(Caller::User(known)) = tokens.caller(second.as_bytes()) else { panic!("no user") };
        let wanted = user("bob");
        assert_eq!((&known.owner, &known.rights, known.quota), (&wanted.owner, &wanted.rights, wanted.quota));
        assert_eq!(users(&path).unwrap().len(), 2);
        // A file that can't be used changes nothing, and is reported once.
        std::fs::write(&path, "[users]\nalice = 1\n").unwrap();
        assert!(tokens.refresh(false).unwrap().contains("the earlier tokens stay valid"));
        assert_eq!((tokens.refresh(false), name(&first).as_deref()), (None, Some("alice")));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_administrators_token_is_compared_as_a_whole() {
        let folder = folder("administrator");
        let path = folder.join("token");
        std::fs::write(&path, "0123456789abcdef\n").unwrap();
        let set_mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set_mode(0o644);
        assert!(matches!(Tokens::read(Some(&path), None), Err(TokensError::Secret(_))));
        set_mode(0o600);
        let tokens = Tokens::read(Some(&path), None).unwrap();
        assert_eq!(tokens.caller(b"0123456789abcdef"), Some(Caller::Administrator));
        for wrong in [&b""[..], b"0123456789abcde", b"0123456789abcdeF", b"0123456789abcdef0"] {
            assert_eq!(tokens.caller(wrong), None);
        }
        std::fs::write(&path, "short").unwrap();
        assert!(matches!(Tokens::read(Some(&path), None), Err(TokensError::Short(_))));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn files_that_others_can_read_or_that_give_too_much_are_refused() {
        let folder = folder("shared-tokens");
        let path = folder.join("tokens");
        add_user(&path, &user("alice")).unwrap();
        let refusal = |mode: u32| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            users(&path).err().map(|error| error.to_string())
        };
        assert_eq!(refusal(0o400), None);
        for mode in [0o640, 0o604, 0o620] {
            assert!(refusal(mode).is_some_and(|message| message.contains("chmod 600")));
        }
        assert_eq!(refusal(0o600), None);
        let mut greedy = user("bob");
        greedy.rights.insert(Right::Administer);
        assert!(matches!(add_user(&path, &greedy), Err(TokensError::Right(..))));
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"read\"", "\"administer\"")).unwrap();
        assert!(matches!(users(&path), Err(TokensError::Right(..))));
        std::fs::write(&path, text.replace("token_sha256 = \"", "token_sha256 = \"g")).unwrap();
        assert!(matches!(users(&path), Err(TokensError::Digest(..))));
        std::fs::write(&path, text.replace("boxes", "bixes")).unwrap();
        assert!(matches!(users(&path), Err(TokensError::Syntax(..))));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

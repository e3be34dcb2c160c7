//! Limits on what a client or a box can make the daemon store or do, each with what it prevents.

use std::time::Duration;

/// Images that users gave, and those of one owner: each takes memory in the fabric as long as a box runs it.
pub(crate) const MAX_IMAGES: usize = 256;
pub(crate) const MAX_IMAGES_OF_OWNER: usize = 32;

/// Boxes: a loop of creations must not use up the host's processes.
pub(crate) const MAX_BOXES: usize = 4096;

/// Configurations of one box: each is a router.
pub(crate) const MAX_CONFIGURATIONS: usize = 64;

/// Bytes of a configuration: the size of a request in a box's mailbox, less its framing.
pub(crate) const MAX_CONFIGURATION_BYTES: usize = api::File::MAX_BYTES;
const _: () = assert!(MAX_CONFIGURATION_BYTES == boundary::limits::MAX_REQUEST - (64 << 10));

/// Bytes of all files of an installation.
pub(crate) const MAX_FILE_BYTES: usize = 256 << 20;

/// Maximum bytes of a request's body that is JSON. Keeps a request from filling the daemon's memory.
pub(crate) const MAX_BODY: usize = 160 << 20;

/// Time limit for a body, from the request's header to its last byte: a client that sends nothing must not occupy a
/// connection or memory.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of a box's label, and the number of labels.
pub(crate) const MAX_LABEL_BYTES: usize = 256;
pub(crate) const MAX_LABELS: usize = 64;

/// The time for listing the handlers of a box, and the bytes of the list: the box itself reports how many it has.
pub(crate) const LIST_TIMEOUT: Duration = Duration::from_secs(30);
pub(crate) const MAX_HANDLER_BYTES: usize = 16 << 20;

/// The longest confirmation time of a stack: a forgotten one must not roll back after a week.
pub(crate) const MAX_CONFIRMATION_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Events kept, and their bytes: some quote a box.
pub(crate) const MAX_JOURNAL_EVENTS: usize = 8192;
pub(crate) const MAX_JOURNAL_BYTES: usize = 8 << 20;

/// The time for a request to a box.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of the argument of a read that the thread of the API sends itself. More would delay other callers.
pub(crate) const MAX_PROMPT_ARGUMENT: usize = 64 << 10;

/// How long an operation waits for another change of the same box: an installation into a box in an endless loop takes
/// its full timeout.
pub(crate) const CHANGE_TIMEOUT: Duration = Duration::from_secs(3);

/// Pieces of a capture queued for a slow reader.
pub(crate) const CAPTURE_QUEUE_LENGTH: usize = 256;

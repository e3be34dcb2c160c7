//! Limits on what a daemon or a box can make the fabric store or do, each with what it prevents.

use std::time::Duration;

/// Switches: each has an address table.
pub(crate) const MAX_SWITCHES: usize = 256;

/// Flows of a steering switch, the matches of one flow and the conditions of one match, and bytes of a flow's text: a
/// request must not fill the memory.
pub(crate) const MAX_FLOWS: usize = 16_384;
pub(crate) const MAX_MATCHES: usize = 256;
pub(crate) const MAX_CONDITIONS: usize = 64;
pub(crate) const MAX_CONDITION_BYTES: usize = 4096;

/// Flows in one reply: packets wait while it is put together.
pub(crate) const MAX_FLOWS_OF_REPLY: usize = 256;

/// Flows whose timeouts are looked at between two rounds, and the rounds between two looks: packets must not wait.
pub(crate) const MAX_EXPIRED_FLOWS: usize = 64;
pub(crate) const ROUNDS_PER_EXPIRY: u32 = 256;

/// Packets that a box may report as held when it ended: the number is displayed and added up.
pub(crate) const MAX_HELD_PACKETS: u64 = 1 << 24;

/// Images that users gave: each takes as much memory as its file, twice.
pub(crate) const MAX_IMAGES: usize = 256;

/// Templates: each takes as much memory as a small box.
pub(crate) const MAX_TEMPLATES: usize = 64;

/// Bytes of a box's texts and files for which a template may be kept: they are compared with those of each box that
/// starts.
pub(crate) const MAX_TEMPLATE_KEY_BYTES: usize = 256 << 10;

/// Bytes of a stored snapshot.
pub(crate) const MAX_TEMPLATE_BYTES: usize = 4 << 20;

/// The time for a new template to become idle: a box that is always busy never does.
pub(crate) const TEMPLATE_TIMEOUT: Duration = Duration::from_millis(500);

/// The time for any other request to a box.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of a box's escaped diagnostics of one configuration. Further diagnostics are dropped.
pub(crate) const MOST_DIAGNOSTIC_BYTES: usize = 256 << 10;

/// How long a spare sandbox is kept after the last start of a box of its kind: it has its own memory and process.
pub(crate) const SPARE_TIME: Duration = Duration::from_secs(60);

/// The time for a box to report its counters: a list of boxes must not wait for one in an endless loop.
pub(crate) const STATS_TIMEOUT: Duration = Duration::from_millis(20);

/// The time for a box to report for an account, and for all boxes together: a box that hangs must not keep the caller
/// waiting, and leaves time for others.
pub(crate) const ACCOUNT_TIMEOUT: Duration = Duration::from_millis(500);
pub(crate) const ACCOUNTS_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes to handlers that are recorded for a box because they changed its configurations, and their bytes: a program that
/// edits routes all the time must not fill the memory. As many are prepared in a box at once.
pub(crate) const MAX_RECORDED_WRITES: usize = boundary::limits::MAX_PREPARED_WRITES;
pub(crate) const MAX_RECORDED_BYTES: usize = 1 << 20;

/// Handlers that are recorded because a box wrote them itself, and events about them after a start or an installation: a
/// hostile box names as many as it likes.
pub(crate) const MAX_OWN_WRITES: usize = 256;
pub(crate) const MAX_OWN_WRITE_EVENTS: u32 = 64;
/// Bytes of the name of such a handler, and of its value.
pub(crate) const MAX_OWN_WRITE_BYTES: usize = 512;

/// Lines kept of a box's log, and their bytes: a box may write long lines.
pub(crate) const MAX_LOG_LINES: usize = 2000;
pub(crate) const MAX_LOG_BYTES: usize = 1 << 20;

/// Bytes of the files of one box, bytes of those of all boxes, and files of one box: boxes must not fill the disk or
/// use up the daemon's descriptors.
pub(crate) const MAX_OUTPUT_BYTES: u64 = 64 << 20;
pub(crate) const MAX_TOTAL_OUTPUT_BYTES: u64 = 1 << 30;
pub(crate) const MAX_OUTPUT_FILES: usize = 16;

/// Messages read from one box before the next box has its turn.
pub(crate) const MAX_EVENTS_PER_ROUND: usize = 256;

/// Processor time after which a box counts as busy, so that huge pages are worth their cost.
pub(crate) const HUGE_PAGE_CPU_THRESHOLD: Duration = Duration::from_millis(100);

/// A box that ran this long counts as working: its next crash is the first in a row.
pub(crate) const CRASH_COUNT_RESET: Duration = Duration::from_secs(10);

/// Crashes in a row after which a box is not restarted.
pub(crate) const MAX_CONSECUTIVE_CRASHES: u32 = 12;

/// The delay before the restart after the second crash in a row; it doubles with each further crash.
pub(crate) const MIN_RESTART_DELAY: Duration = Duration::from_millis(100);

/// The longest delay before a restart.
pub(crate) const MAX_RESTART_DELAY: Duration = Duration::from_secs(30);

/// Services and chains of one switch.
pub(crate) const MAX_SERVICES: usize = 4096;
pub(crate) const MAX_CHAINS: usize = 4096;

/// Boxes: a loop of creations must not use up the host's processes.
pub(crate) const MAX_BOXES: usize = 4096;

/// Concurrent checks that have run for less than `SLOW_CHECK`: each needs a box and a CPU.
pub(crate) const MAX_QUICK_CHECKS: usize = 4;

/// All concurrent checks. Those that run for minutes must not delay others, nor take all memory.
pub(crate) const MAX_CHECKS: usize = 16;

/// The time after which a check no longer delays others: nearly all take milliseconds.
pub(crate) const SLOW_CHECK: Duration = Duration::from_millis(500);

/// How long an operation waits for another change of the same box: an installation into a box in an endless loop takes
/// its full timeout.
pub(crate) const CHANGE_TIMEOUT: Duration = Duration::from_secs(3);

/// The time for a graceful stop, after which the box is killed.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Concurrent captures.
pub(crate) const MAX_CAPTURES: usize = 32;

/// Batches of captured packets queued for a slow reader.
pub(crate) const CAPTURE_QUEUE_LENGTH: usize = 256;

/// The time for creating huge pages in each round of measurements: boxes are not watched meanwhile.
pub(crate) const HUGE_PAGE_BUDGET: Duration = Duration::from_millis(10);

/// Events kept for the daemon, and their bytes: some quote a box.
pub(crate) const MAX_EVENTS: usize = 8192;
pub(crate) const MAX_EVENT_BYTES: usize = 8 << 20;

/// How long a thread that has carried out an order polls for the next one before it sleeps: a daemon often gives several in a row.
pub(crate) const ORDER_POLL_TIME: Duration = Duration::from_micros(50);

/// Channels for one order at a time. Each has a thread.
pub(crate) const MAX_ORDER_CHANNELS: usize = 64;

/// The time without orders after which a spare is made: it takes a processor from what the daemon orders. While the daemon waits for its
/// disk, one is free.
pub(crate) const SPARE_DELAY: Duration = Duration::from_micros(100);

/// How long news wait before the fabric sends a notice: the daemon fetches them at the end of an operation without one.
pub(crate) const NEWS_DELAY: Duration = Duration::from_millis(2);

/// How long a thread polls for the end of a command to the switches' thread before it sleeps: nearly all take less.
pub(crate) const COMMAND_POLL_TIME: Duration = Duration::from_micros(100);

/// Threads that carry out orders. Each may wait for a box.
pub(crate) const MAX_ORDER_THREADS: usize = 512;

/// Threads that wait for orders when there are none. Those that more orders needed end: starting a thread takes longer than
/// most orders, and its end is announced to each virtual machine.
pub(crate) const KEPT_ORDER_THREADS: usize = 8;

/// How long a function that attached itself may take no packet although some wait for it. Its flows would stand still.
pub(crate) const MAX_FUNCTION_SILENCE: Duration = Duration::from_secs(2);

/// The time between two looks at the functions that attached themselves.
pub(crate) const FUNCTION_LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The time for a function to register after it has connected: connections that say nothing would use up the descriptors.
pub(crate) const REGISTER_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections at the socket of a service that have not registered.
pub(crate) const MAX_UNREGISTERED: usize = 32;

/// Connections that the socket of a service accepts at once, and the time until it accepts one more. A function that joins and leaves
/// again and again would have the switch changed each time, and hide all other events.
pub(crate) const MAX_JOINS: u32 = 256;
pub(crate) const JOIN_INTERVAL: Duration = Duration::from_millis(50);

/// The time for which flows of a box are frozen while their state is handed over. Their packets wait, and so do hand-overs of others.
pub(crate) const BOX_FREEZE_TIMEOUT: Duration = Duration::from_secs(5);

/// The time for a function that leaves to hand over the state of its flows, and the time for which flows are frozen meanwhile. Others
/// wait for their turn.
pub(crate) const FUNCTION_HANDOVER_TIMEOUT: Duration = Duration::from_secs(30);
pub(crate) const FUNCTION_FREEZE_TIMEOUT: Duration = Duration::from_secs(3);

/// The time after which a function leaves in any case: its turn to hand over may not come.
pub(crate) const FUNCTION_LEAVE_TIMEOUT: Duration = Duration::from_secs(60);

/// Messages of one function between two looks. Further ones are dropped and counted: they must not keep the others waiting.
pub(crate) const MAX_FUNCTION_MESSAGES: u32 = 1024;

/// Maximum sleep of a switch thread. Its only use is to recover if a box's process loses a wake-up.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);

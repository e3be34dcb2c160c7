//! The processor: its features, the rate of its clock, and the time.

use boundary::CpuFeatures;
use std::arch::x86_64::_rdtsc;
use std::fs::File;
use std::io::Read;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long the time stamp counter is measured if its rate is not reported.
const MEASURE: Duration = Duration::from_millis(10);

/// The time stamp counter.
pub(crate) fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has it, and Linux lets programs read it.
    unsafe { _rdtsc() }
}

/// Processor time that the calling thread has used.
pub(crate) fn thread_time() -> Duration {
    clock_time(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The time of a kernel clock; zero if the clock no longer exists.
pub(crate) fn clock_time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the time to a live variable.
    unsafe { libc::clock_gettime(clock, &mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Pins a thread, or a single-threaded process, to these processors, if the kernel permits it.
pub(crate) fn pin(thread: libc::pid_t, processors: &[usize]) {
    // SAFETY: an all-zero set is valid and empty; numbers beyond its size are ignored; the kernel reads exactly its
    // size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for processor in processors.iter().filter(|processor| **processor < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(*processor, &mut set);
        }
        libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// The processor features that are reported to the image.
pub(crate) fn features() -> CpuFeatures {
    let all = [
        (std::is_x86_feature_detected!("avx2"), CpuFeatures::AVX2),
        (std::is_x86_feature_detected!("aes"), CpuFeatures::AES),
        (std::is_x86_feature_detected!("pclmulqdq"), CpuFeatures::PCLMULQDQ),
        (std::is_x86_feature_detected!("rdrand"), CpuFeatures::RDRAND),
        (std::is_x86_feature_detected!("bmi1") && std::is_x86_feature_detected!("bmi2"), CpuFeatures::BMI),
    ];
    // AVX-512 is not reported: a box's extended state is limited to 256-bit vectors.
    all.into_iter().filter(|(there, _)| *there).fold(CpuFeatures::default(), |set, (_, one)| set.with(one))
}

/// A feature that the image is compiled for and that this processor lacks.
pub(crate) fn missing() -> Option<&'static str> {
    let needed = [
        (std::is_x86_feature_detected!("avx2"), "AVX2"),
        (std::is_x86_feature_detected!("bmi1") && std::is_x86_feature_detected!("bmi2"), "BMI"),
        (std::is_x86_feature_detected!("fma"), "FMA"),
        (std::is_x86_feature_detected!("movbe"), "MOVBE"),
        (std::is_x86_feature_detected!("lzcnt"), "LZCNT"),
        (std::is_x86_feature_detected!("aes"), "AES"),
        (std::is_x86_feature_detected!("pclmulqdq"), "PCLMULQDQ"),
    ];
    needed.into_iter().find(|(there, _)| !there).map(|(_, name)| name)
}

/// The counter's rate per second.
static RATE: OnceLock<u64> = OnceLock::new();

/// Sets the counter's rate to what the kernel reports, so that it need not be measured. It has an effect only before the
/// first call of [`tsc_hz`].
pub(crate) fn note_tsc_khz(khz: u32) {
    if khz > 0 {
        // Both are rates of the same counter.
        let _ = RATE.set(u64::from(khz) * 1000);
    }
}

/// The counter's rate per second. It is measured, once, if the kernel did not report it.
pub(crate) fn tsc_hz() -> u64 {
    *RATE.get_or_init(|| {
        let (start, from) = (Instant::now(), cycles());
        while start.elapsed() < MEASURE {
            std::hint::spin_loop();
        }
        let (time, counted) = (start.elapsed(), cycles() - from);
        (u128::from(counted) * 1_000_000_000 / time.as_nanos().max(1)) as u64
    })
}

/// The time in which the counter advances by `cycles`.
pub(crate) fn time(cycles: u64) -> Duration {
    let nanoseconds = u128::from(cycles) * 1_000_000_000 / u128::from(tsc_hz().max(1));
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// The number of cycles that the counter advances in `time`.
pub(crate) fn ticks(time: Duration) -> u64 {
    let cycles = time.as_nanos() * u128::from(tsc_hz()) / 1_000_000_000;
    u64::try_from(cycles).unwrap_or(u64::MAX)
}

/// The counter, and the nanoseconds since 1970 at the same moment.
pub(crate) fn clock() -> (u64, u64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (cycles(), u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// Random numbers for one start of one box.
pub(crate) fn seeds() -> std::io::Result<[u64; 4]> {
    /// Opened once: many boxes may be started together.
    static SOURCE: OnceLock<File> = OnceLock::new();
    let source = match SOURCE.get() {
        Some(source) => source,
        None => {
            let opened = File::open("/dev/urandom")?;
            SOURCE.get_or_init(|| opened)
        }
    };
    let (mut bytes, mut source) = ([0; 32], source);
    source.read_exact(&mut bytes)?;
    let word = |at: usize| bytes.iter().skip(at).take(8).fold(0, |word, byte| word << 8 | u64::from(*byte));
    Ok([word(0), word(8), word(16), word(24)])
}

//! A panic ends in a crash report.

use crate::{exit, fault, heap};
use boundary::CrashCause;
use boundary::limits::MAX_CRASH_MESSAGE;
use core::fmt::Write;
use core::panic::PanicInfo;

/// A text that is cut where it becomes too long: no heap is needed to report that there is none.
struct Text {
    bytes: [u8; MAX_CRASH_MESSAGE],
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for (to, from) in self.bytes.iter_mut().skip(self.length).zip(text.as_bytes()) {
            *to = *from;
            self.length += 1;
        }
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    if let Some(page) = exit::crash_page() {
        let cause = if heap::exhausted() { CrashCause::OutOfMemory } else { CrashCause::Panic };
        if page.begin(cause) {
            let mut text = Text { bytes: [0; MAX_CRASH_MESSAGE], length: 0 };
            // A text that doesn't fit is cut, never an error.
            let _ = write!(text, "{info}");
            page.set_message(text.bytes.get(..text.length).unwrap_or_default());
            fault::add_context(&page);
        }
    }
    exit::crash()
}

/// The prebuilt library names this for unwinding, which panics here never do.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    exit::crash()
}

/// As above; the address of this one stands beside functions of the prebuilt library.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() -> ! {
    exit::crash()
}

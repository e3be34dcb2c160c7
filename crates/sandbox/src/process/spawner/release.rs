//! Gives up the helper's copy of the host's memory: secrets, packets, and memory of boxes that would stay allocated.
//!
//! It runs in the helper: see there for what it must not do.

use crate::process::spawner::socket::close;
use crate::process::spawner::step::errno_location;

/// Bytes of the list of mappings that are read at once: many lines of it, of which each may hold a path.
const BUFFER_SIZE: usize = 8 << 10;

/// A line of the list of mappings.
#[derive(Debug, PartialEq, Eq)]
struct Mapping<'a> {
    start: usize,
    end: usize,
    is_private: bool,
    path: &'a [u8],
}

/// Unmaps everything but the program, its libraries, and the stack and the variables of this thread. If the list of
/// mappings can't be read, the memory stays.
pub(super) fn release_memory() {
    let here = 0u8;
    let kept = [(&raw const here).addr(), errno_location().addr()];
    // SAFETY: the path is a static string.
    let list = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if list < 0 {
        return;
    }
    let mut buffer = [0; BUFFER_SIZE];
    // Bytes of an incomplete line at the start of the buffer, and the end of the last mapping of the program.
    let (mut filled, mut program_end) = (0, 0);
    while let Some(room) = buffer.get_mut(filled..) {
        // SAFETY: the kernel writes as many bytes as there is room for.
        let read = unsafe { libc::read(list, room.as_mut_ptr().cast(), room.len()) };
        if read <= 0 {
            break;
        }
        filled += read as usize;
        let mut consumed = 0;
        while let Some(rest) = buffer.get(consumed..filled)
            && let Some(length) = rest.iter().position(|byte| *byte == b'\n')
            && let Some(line) = rest.get(..length)
        {
            consumed += length + 1;
            let Some(mapping) = Mapping::parse(line) else { continue };
            if mapping.is_needed(program_end, &kept) {
                if mapping.is_of_program() {
                    program_end = mapping.end;
                }
            } else {
                // SAFETY: nothing in this process uses the mapping: its code, its libraries, and the stack and the
                // variables of its only thread are kept.
                unsafe {
                    libc::munmap(std::ptr::without_provenance_mut(mapping.start), mapping.end - mapping.start)
                };
            }
        }
        buffer.copy_within(consumed..filled, 0);
        filled -= consumed;
    }
    close(list);
}

impl<'a> Mapping<'a> {
    /// Parses `start-end permissions offset device inode path`.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
        let mut range = fields.next()?.split(|byte| *byte == b'-');
        let (start, end) = (hexadecimal(range.next()?)?, hexadecimal(range.next()?)?);
        let is_private = fields.next()?.get(3) == Some(&b'p');
        let path = fields.nth(3).unwrap_or_default();
        (start < end).then_some(Self { start, end, is_private, path })
    }

    /// Whether it maps a file privately, as programs and libraries are. Huge pages have a path too.
    fn is_of_program(&self) -> bool {
        self.is_private && self.path.starts_with(b"/") && !self.path.starts_with(b"/anon_hugepage")
    }

    /// Whether it is used by the helper: code, variables that follow those of the program's file (`program_end`), the
    /// kernel's pages, and what contains an address of `kept`.
    fn is_needed(&self, program_end: usize, kept: &[usize]) -> bool {
        self.is_of_program()
            || self.path.starts_with(b"[v")
            || self.path.is_empty() && self.is_private && self.start == program_end
            || kept.iter().any(|address| (self.start..self.end).contains(address))
    }
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0usize, |number, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(number.checked_mul(16)? | digit as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_and_its_stack_are_kept() {
        let lines: [(&str, bool); 12] = [
            ("55d0a0000000-55d0a0001000 r--p 00000000 fe:00 77                  /usr/bin/click box", true),
            ("55d0a0001000-55d0a0002000 rw-p 00001000 fe:00 77                  /usr/bin/click box", true),
            ("55d0a0002000-55d0a0003000 rw-p 00000000 00:00 0", true),
            ("55d0a1000000-55d0a1100000 rw-p 00000000 00:00 0                   [heap]", false),
            ("7f0000000000-7f0001000000 rw-p 00000000 00:00 0", false),
            (
                "7f0001000000-7f0001001000 rw-s 00000000 00:01 9                   /memfd:box-region (deleted)",
                false,
            ),
            (
                "7f0001200000-7f0001400000 rw-p 00000000 00:0f 9                   /anon_hugepage (deleted)",
                false,
            ),
            ("7f0001500000-7f0001501000 r--s 00000000 fe:00 5                   /etc/shared", false),
            ("7f0001600000-7f0001700000 rw-p 00000000 00:00 0", true),
            ("7f0001800000-7f0001801000 r-xp 00001000 fe:00 8                   /lib/libc.so.6", true),
            ("7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                   [stack]", false),
            ("7ffc00100000-7ffc00102000 r-xp 00000000 00:00 0                   [vdso]", true),
        ];
        let (kept, mut program_end) = ([0x7f00_0168_0000], 0);
        for (line, needed) in lines {
            let mapping = Mapping::parse(line.as_bytes()).unwrap();
            assert_eq!(mapping.is_needed(program_end, &kept), needed, "{line}");
            if mapping.is_of_program() {
                program_end = mapping.end;
            }
        }
        for line in ["", "12", "12-", "12-11 rw-p", "zz-11 rw-p 0 0 0", "1ffffffffffffffff-2 rw-p 0 0 0"] {
            assert_eq!(Mapping::parse(line.as_bytes()), None, "{line}");
        }
    }
}

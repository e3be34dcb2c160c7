//! The entry point of the program that `dist/build` links.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Prints its arguments, constants with addresses, how many pages of a variable are copies of its file's, and a line at its end.
const PROGRAM: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAGE = 4096, PAGES = 8 };
static char variable[(PAGES + 1) * PAGE] = "a";
static const char *const words[] = {"constants", "with", "addresses"};

static void end(void) { puts("end"); }

int main(int count, char **arguments) {
    uint64_t first = ((uintptr_t)variable + PAGE - 1) / PAGE, entries[PAGES] = {0};
    FILE *map = fopen("/proc/self/pagemap", "rb");
    int copied = 0;
    if (map == NULL || fseek(map, (long)(first * sizeof *entries), SEEK_SET) != 0 ||
        fread(entries, sizeof *entries, PAGES, map) != PAGES)
        return 1;
    for (int page = 0; page < PAGES; page++)
        copied += (entries[page] >> 63) == 1 && (entries[page] >> 61 & 1) == 0;
    atexit(end);
    for (int number = 1; number < count; number++)
        printf("%s ", arguments[number]);
    printf("%s %s %s %d\n", words[count - 3], words[count - 2], words[count - 1], copied);
    return 7;
}
"#;

#[test]
fn the_entry_point_brings_in_what_is_written_and_starts_the_program() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join("start.c"), folder.join("start"));
    fs::write(&source, PROGRAM).expect("a file");
    let start = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/start.S");
    let mut compile = Command::new("cc");
    compile.args(["-static-pie", "-fPIE", "-Wall", "-Wextra", "-Werror", "-Wl,-e,populate_and_start", start]);
    let compiled = compile.arg(&source).arg("-o").arg(&program).output().expect("a compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(&program).args(["two", "words"]).output().expect("the program starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "two words constants with addresses 8\nend\n");
    assert_eq!(output.status.code(), Some(7));
}

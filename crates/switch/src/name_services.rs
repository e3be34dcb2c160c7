//! Where the C library looks up the names of hosts.

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    fn __nss_configure_lookup(
        database: *const std::ffi::c_char,
        services: *const std::ffi::c_char,
    ) -> std::ffi::c_int;
}

/// Lets this process find the names of hosts in `/etc/hosts` and by DNS only. To be called before it looks one up.
///
/// The program to distribute is linked statically. It could load the other services of `/etc/nsswitch.conf` only if they
/// belonged to the very version of the C library that is in it.
pub fn limit_to_files_and_dns() {
    // It fails only without memory. Then the lookup fails as well.
    #[cfg(target_env = "gnu")]
    // SAFETY: both are constant strings that end in a zero byte.
    unsafe {
        __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr());
    }
}

//! How long an application has been running.

/// Below this age, in seconds, a program may not have published its windows yet: some first wait for services of the
/// desktop that do not come.
const YOUNG: f64 = 15.0;
/// Libraries and programs that publish their windows, by their names in a process's map of files.
const TOOLKITS: [&str; 7] =
    ["/libatk-bridge-2.0", "/libgtk-4", "/libQt5Gui", "/libQt6Gui", "/chrom", "/libxul.so", "/libvcl"];
/// The unit of times in `/proc/PID/stat`: part of the kernel's interface, and the same on all architectures that matter.
const TICKS_PER_SECOND: f64 = 100.0;
/// Place of the start time in `/proc/PID/stat`, counted after the name in parentheses.
const START_TIME: usize = 19;

/// Whether process `pid` was started a moment ago. A process that cannot be looked at is not.
pub(super) fn is_young(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    let uptime = std::fs::read_to_string("/proc/uptime").ok();
    let age = stat.zip(uptime).and_then(|(stat, uptime)| age(&stat, &uptime));
    age.is_some_and(|age| age < YOUNG)
}

/// Whether process `pid` is stopped: by a signal, or by a debugger. One that cannot be looked at is not.
pub(super) fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['T', 't'])))
}

/// Whether process `pid` uses a toolkit that publishes its windows. One that cannot be looked at may.
pub(super) fn has_toolkit(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/maps")) {
        Ok(maps) => TOOLKITS.iter().any(|name| maps.contains(name)),
        Err(_) => true,
    }
}

/// Seconds since the start that `stat` tells, at `uptime`.
fn age(stat: &str, uptime: &str) -> Option<f64> {
    // The name may contain spaces and parentheses itself.
    let (_, fields) = stat.rsplit_once(") ")?;
    let start: f64 = fields.split_ascii_whitespace().nth(START_TIME)?.parse().ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    Some(uptime - start / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat =
            "42 (a) b (c) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12300 1000 10 18446744073709551615";
        assert_eq!(age(stat, "125.50 200.00\n"), Some(2.5));
    }

    #[test]
    fn this_process_is_young_and_the_first_is_not() {
        assert!(is_young(std::process::id()));
        assert!(!is_young(u32::MAX));
    }

    #[test]
    fn nonsense_has_no_age() {
        assert_eq!(age("", "1.0"), None);
        assert_eq!(age("1 (x) S 1", "1.0"), None);
    }
}

//! Who started this process.

use std::path::Path;

/// A process, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    /// Its name, as the kernel has it: at most 15 bytes.
    pub(super) name: String,
    /// Its arguments.
    pub(super) arguments: Vec<String>,
}

/// More ancestors than this are not looked at.
const MAX_ANCESTORS: usize = 32;

/// Programs that start others and wait for them. Their end is not the client's end: the client is above them.
const LAUNCHERS: &[&str] = &[
    "ash",
    "bash",
    "bunx",
    "busybox",
    "bwrap",
    "chrt",
    "csh",
    "dash",
    "doas",
    "env",
    "fish",
    "ionice",
    "ksh",
    "mksh",
    "nice",
    "nohup",
    "npx",
    "nsenter",
    "pipx",
    "pnpm",
    "prlimit",
    "runuser",
    "script",
    "setpriv",
    "setsid",
    "sh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "tcsh",
    "time",
    "timeout",
    "unshare",
    "uv",
    "uvx",
    "xargs",
    "zsh",
];

/// Scripts by which a language's interpreter is a launcher.
const SCRIPTS: &[&str] =
    &["npx", "npx-cli.js", "npm", "npm-cli.js", "pnpm", "pnpm.cjs", "yarn", "yarn.js", "bunx", "uvx", "pipx"];

impl Process {
    /// Whether it starts others for somebody else.
    pub(super) fn is_launcher(&self) -> bool {
        let file_name = |path: &String| {
            Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        };
        // npm gives its process the title "npm exec …".
        LAUNCHERS.contains(&self.name.as_str())
            || self.name.starts_with("npm ")
            || self.arguments.get(1).is_some_and(|script| SCRIPTS.contains(&file_name(script).as_str()))
    }

    /// Process `pid`, if it exists and may be seen.
    pub(super) fn read(pid: i32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, parent) = parse_stat(&stat)?;
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let arguments = arguments.split(|byte| *byte == 0);
        let arguments = arguments.map(|a| String::from_utf8_lossy(a).into_owned()).collect();
        Some(Self { pid, parent, name, arguments })
    }
}

/// Name and parent out of `/proc/PID/stat`. The name is in brackets and may hold brackets itself.
fn parse_stat(stat: &str) -> Option<(String, i32)> {
    let name = stat.get(stat.find('(')? + 1..stat.rfind(')')?)?;
    let rest = stat.get(stat.rfind(')')? + 1..)?;
    let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
    Some((name.to_owned(), parent))
}

/// The processes whose end means that the client is gone, nearest first: the parent, and above launchers those that
/// started them, up to the first that is none: the client. Process 1 (and one outside of our pid namespace, which is 0)
/// adopts orphans and ends with us at the latest: it is no client.
pub(super) fn line_to_client(parent: i32, read: impl Fn(i32) -> Option<Process>) -> Vec<Process> {
    let mut line = Vec::new();
    let mut pid = parent;
    while pid > 1 && line.len() < MAX_ANCESTORS {
        let Some(process) = read(pid) else { break };
        let client = !process.is_launcher();
        pid = process.parent;
        line.push(process);
        if client {
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes from lines of `pid parent name arguments…`.
    fn pids(parent: i32, table: &str) -> Vec<i32> {
        let read = |pid: i32| {
            table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find_map(|words| {
                (words.first()?.parse() == Ok(pid)).then(|| Process {
                    pid,
                    parent: words[1].parse().unwrap(),
                    name: words[2].to_owned(),
                    arguments: words[3..].iter().map(|word| (*word).to_owned()).collect(),
                })
            })
        };
        line_to_client(parent, read).iter().map(|process| process.pid).collect()
    }

    #[test]
    fn a_client_that_is_the_parent_is_all_there_is() {
        assert_eq!(pids(20, "20 10 claude\n10 1 bash"), [20]);
        assert_eq!(pids(20, "20 10 node node /opt/agent.js\n10 1 bash"), [20]);
    }

    #[test]
    fn launchers_lead_to_the_client_above_them() {
        assert_eq!(pids(30, "30 20 sh -c x\n20 10 env\n10 5 code\n5 1 bash"), [30, 20, 10]);
        assert_eq!(pids(30, "30 20 node node /usr/bin/npx deskhand\n20 10 claude"), [30, 20]);
        assert_eq!(pids(30, "30 20 python3 python3 /home/u/.local/bin/uvx deskhand\n20 10 host"), [30, 20]);
    }

    #[test]
    fn init_is_no_client() {
        assert_eq!(pids(1, "1 0 systemd"), Vec::<i32>::new());
        assert_eq!(pids(0, ""), Vec::<i32>::new());
        assert_eq!(pids(30, "30 1 bash\n1 0 init"), [30]);
    }

    #[test]
    fn a_process_is_read_from_proc() {
        let own = Process::read(std::process::id().cast_signed()).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id().cast_signed());
        assert_eq!(parse_stat("7 (a) b (c)) S 3 7 7"), Some(("a) b (c)".to_owned(), 3)));
        assert_eq!(parse_stat("7"), None);
    }
}

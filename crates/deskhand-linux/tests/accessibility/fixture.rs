//! A fixture application on the private desktop, and the reader that looks at it.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deskhand_core::desktop::{
    Accessibility, Details, DetailsRequest, Node, Stop, Tree, TreeNote, TreeRequest, Window, Windows,
};
use deskhand_linux::accessibility::AtSpi;
use deskhand_linux::environment::SessionEnvironment;
use deskhand_linux::x11::X11;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A window appears within this, on a machine that does other things as well.
const APPEAR: Duration = Duration::from_secs(30);

/// An application that does what it is told. Ends with this value.
pub(crate) struct Fixture {
    child: Child,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    pub(crate) window: Window,
}

impl Fixture {
    pub(crate) async fn start(environment: &Arc<SessionEnvironment>, script: &str, title: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/accessibility").join(script);
        let mut child = Command::new("/usr/bin/python3")
            .arg(script)
            .arg(title)
            .env_clear()
            .envs(&environment.variables)
            // Without a graphics card, OpenGL takes seconds to draw the first frame.
            .env("GSK_RENDERER", "cairo")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("python3 starts");
        let commands = child.stdin.take().expect("a pipe");
        let mut answers = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let ready = tokio::time::timeout(APPEAR, answers.next_line()).await;
        assert!(matches!(&ready, Ok(Ok(Some(line))) if line == "ready"), "{title}: {ready:?}");
        let window = appeared(environment, title).await;
        Self { child, commands, answers, window }
    }

    /// Gives a command and waits until it has been carried out.
    pub(crate) async fn tell(&mut self, command: &str) {
        self.commands.write_all(format!("{command}\n").as_bytes()).await.expect("the fixture reads");
        let answer = self.answers.next_line().await.expect("the fixture answers");
        assert_eq!(answer.as_deref(), Some("done"), "{command}");
    }

    /// Stops the process, or lets it go on.
    pub(crate) async fn signal(&self, signal: &str) {
        let pid = self.child.id().expect("the fixture runs").to_string();
        let status = Command::new("kill").args([format!("-{signal}"), pid]).status().await;
        assert!(status.is_ok_and(|status| status.success()));
    }
}

/// Waits for the window `title`.
async fn appeared(environment: &Arc<SessionEnvironment>, title: &str) -> Window {
    let program = std::env::current_exe().expect("this program");
    let x11 = X11::new(Arc::new(Arc::clone(environment)), program);
    let mut changes = x11.changes().await.expect("the display");
    let find = async {
        loop {
            let windows = x11.list().await.expect("the display");
            if let Some(window) = windows.into_iter().find(|window| window.title == title) {
                return window;
            }
            changes.changed().await.expect("the display");
        }
    };
    tokio::time::timeout(APPEAR, find).await.expect("the window appears")
}

/// A connection to accessibility, as the driver has it.
pub(crate) struct Eyes {
    pub(crate) atspi: AtSpi,
}

impl Eyes {
    pub(crate) fn on(environment: &Arc<SessionEnvironment>) -> Self {
        Self { atspi: AtSpi::new(Arc::new(Arc::clone(environment))) }
    }

    pub(crate) async fn tree(&self, window: &Window) -> Tree {
        let request = TreeRequest { max_nodes: 5_000, budget: Duration::from_secs(10), text_limit: 200 };
        self.atspi.tree(window, &request, &Stop::new()).await.expect("a tree")
    }

    /// The tree of a window that is being busy for a while.
    pub(crate) async fn whole_at_last(&self, window: &Window) -> Vec<Node> {
        loop {
            let tree = self.tree(window).await;
            if !matches!(tree.notes.as_slice(), [TreeNote::NotResponding { .. }]) {
                assert_eq!(tree.notes, Vec::<TreeNote>::new());
                return tree.nodes;
            }
        }
    }

    /// The tree, with nothing to remark on it.
    pub(crate) async fn whole(&self, window: &Window) -> Vec<Node> {
        let tree = self.tree(window).await;
        assert_eq!(tree.notes, Vec::<TreeNote>::new());
        tree.nodes
    }

    pub(crate) async fn details(&self, window: &Window, nodes: &[&Node]) -> Vec<Details> {
        let ids: Vec<_> = nodes.iter().map(|node| node.id.clone()).collect();
        let request = DetailsRequest { text_limit: 200, frames: true, actions: true };
        let details = self.atspi.details(window, &ids, request, &Stop::new()).await.expect("details");
        details.into_iter().map(|details| details.expect("the element is there")).collect()
    }

    /// Waits until `node` is said to lie in `window`: a toolkit may be asked before it has been told where its new window was
    /// put, and announces no change when it learns.
    pub(crate) async fn comes_into(&self, window: &Window, node: &Node) {
        let begun = Instant::now();
        loop {
            let details = self.details(window, &[node]).await;
            let frame = details[0].frame.expect("a frame");
            if window.client.intersection(&frame).is_some() {
                return;
            }
            assert!(begun.elapsed() < APPEAR, "{frame} is not in {}", window.client);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

pub(crate) fn named<'a>(nodes: &'a [Node], name: &str) -> &'a Node {
    let found = nodes.iter().find(|node| node.name == name);
    found.unwrap_or_else(|| panic!("no {name:?} in {:?}", names(nodes)))
}

pub(crate) fn with_role<'a>(nodes: &'a [Node], role: &str) -> &'a Node {
    nodes.iter().find(|node| node.role == role).unwrap_or_else(|| panic!("no {role}"))
}

pub(crate) fn names(nodes: &[Node]) -> Vec<&str> {
    nodes.iter().map(|node| node.name.as_str()).collect()
}

/// Names of the buttons that were added by command, in order.
pub(crate) fn dynamic(nodes: &[Node]) -> Vec<&str> {
    let buttons = nodes.iter().filter(|node| node.role == "button" || node.role == "push button");
    buttons.map(|node| node.name.as_str()).filter(|name| name.starts_with("dynamic ")).collect()
}

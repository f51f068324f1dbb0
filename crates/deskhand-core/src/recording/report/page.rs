//! The page itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::BEGINNING;
use super::material::{Material, Picture, Told, Tree};
use super::text::{MAX_VALUE, address, escape, line, shorten};
use super::words::{self, Outcome};
use crate::geometry::{Point, Rect};
use crate::recording::trajectory::{Action, Part, Shot, counted, turn_folder};
use crate::timestamp::milliseconds;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Characters of an answer that are shown.
const MAX_ANSWER: usize = 20_000;
/// Digits of a build that are shown.
const BUILD_DIGITS: usize = 12;
/// Different looks of sessions.
const SESSION_COLOURS: usize = 6;

/// The page of a recording.
pub fn page(material: &Material) -> String {
    let sessions = Sessions::of(material);
    let title = match &material.trajectory.session {
        Some(session) => format!("Recording of {}", line(session)),
        None => "Recording of all sessions".to_owned(),
    };
    let mut out = String::from(BEGINNING);
    out += &format!(
        "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
         style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        digest(STYLE),
        digest(SCRIPT)
    );
    out += &head(material, &title, &sessions);
    out += "<main>\n";
    out += &timeline(material, &sessions);
    out += "<div class=\"stage\">\n";
    out += TOOLBAR;
    for told in &material.turns {
        out += &turn(material, told, &sessions);
    }
    if material.turns.is_empty() {
        out += "<p class=\"empty\">This recording has no turns: nothing that acts was called while it ran.</p>\n";
    }
    out += "</div>\n</main>\n<dialog aria-label=\"Picture, enlarged\"></dialog>\n";
    out += &data(material);
    out += &format!("<script>{SCRIPT}</script>\n</body>\n</html>\n");
    out
}

const TOOLBAR: &str = "<div class=\"toolbar\" role=\"toolbar\" aria-label=\"View\">\
    <span class=\"group\"><button type=\"button\" id=\"previous\" title=\"Previous turn (←)\">← <span>Previous</span></button>\
    <output id=\"place\"></output>\
    <button type=\"button\" id=\"next\" title=\"Next turn (→)\"><span>Next</span> →</button></span>\
    <span class=\"group\" role=\"group\" aria-label=\"Pictures\">\
    <button type=\"button\" data-view=\"both\" aria-pressed=\"true\" title=\"Side by side (s)\">Side by side</button>\
    <button type=\"button\" data-view=\"before\" aria-pressed=\"false\" title=\"Only before (b)\">Before</button>\
    <button type=\"button\" data-view=\"after\" aria-pressed=\"false\" title=\"Only after (a)\">After</button></span>\
    <button type=\"button\" id=\"marks\" aria-pressed=\"true\" title=\"Show where it acted (m)\">Marks</button>\
    </div>\n";

/// What a policy calls a script or style.
fn digest(text: &str) -> String {
    format!("sha256-{}", BASE64.encode(Sha256::digest(text)))
}

/// The names of sessions, each with a colour.
struct Sessions {
    names: Vec<String>,
    /// Whether each turn says whose it is.
    told: bool,
}

impl Sessions {
    fn of(material: &Material) -> Self {
        let mut names: Vec<String> = Vec::new();
        for action in material.turns.iter().filter_map(|told| told.action.as_ref().ok()) {
            if let Some(name) = &action.session
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
        // Of a session's own recording the name at the top is enough.
        let told = names.len() > 1 || material.trajectory.session.is_none();
        Self { names, told }
    }

    fn chip(&self, name: Option<&str>) -> String {
        let Some(name) = name.filter(|_| self.told) else { return String::new() };
        let place = self.names.iter().position(|other| other == name).unwrap_or_default() % SESSION_COLOURS;
        format!("<span class=\"session s{place}\"><bdi>{}</bdi></span>", line(&shorten(name, 40)))
    }
}

fn head(material: &Material, title: &str, sessions: &Sessions) -> String {
    let trajectory = &material.trajectory;
    let mut counts = String::new();
    for outcome in Outcome::ALL {
        let count = material.turns.iter().filter(|told| Outcome::of(&told.action) == outcome).count();
        if count > 0 {
            counts += &format!(
                "<li class=\"{}\" title=\"{}\"><b>{count}</b> {}</li>",
                outcome.class(),
                outcome.meaning(),
                outcome.label()
            );
        }
    }
    let parts: String =
        trajectory.parts.iter().enumerate().map(|(at, one)| part(material, at, one)).collect();
    let displays = trajectory.displays.iter().map(|each| {
        let scale = if each.scale == 1.0 { String::new() } else { format!(", scale {}", each.scale) };
        format!("{} <bdi>{}</bdi> ({}{scale})", each.display, line(&each.name), each.frame)
    });
    let driver = &trajectory.driver;
    // Digits of a digest, of which the first tell builds apart.
    let build = driver.build.as_ref().map(|build| {
        let first: String = build.chars().take(BUILD_DIGITS).collect();
        format!(", build <span title=\"{}\">{}</span>", line(&shorten(build, MAX_VALUE)), line(&first))
    });
    let chips: String = sessions.names.iter().map(|name| sessions.chip(Some(name))).collect();
    let chips = if chips.is_empty() { chips } else { format!("<p class=\"sessions\">Sessions: {chips}</p>") };
    format!(
        "<header class=\"head\">\n<h1><bdi>{title}</bdi></h1>\n<ul class=\"counts\">{counts}</ul>\n{chips}\
         <ol class=\"parts\">{parts}</ol>\n{}\
         <p class=\"facts\">Display {} · recorded by {} {}{}</p>\n\
         <noscript><p class=\"note\">Pictures, trees and keys need JavaScript, which is off here.</p></noscript>\n</header>\n",
        left_out(material),
        displays.collect::<Vec<_>>().join("; "),
        line(&driver.name),
        line(&driver.version),
        build.unwrap_or_default(),
    )
}

/// What this page does not show, though the recording has it.
fn left_out(material: &Material) -> String {
    let mut notes = Vec::new();
    if material.more_turns > 0 {
        notes.push(format!("the last {}, too many for one page", counted(material.more_turns, "turn")));
    }
    match material.pictures_left_out() {
        0 => {}
        count => notes.push(format!(
            "{}, as the page would be too large (links to the files are in their places)",
            counted(count, "picture")
        )),
    }
    match material.turns.iter().filter(|told| told.tree == Tree::LeftOut).count() {
        0 => {}
        count => notes.push(format!("{}, for the same reason", counted(count, "element tree"))),
    }
    match notes.is_empty() {
        true => String::new(),
        false => format!("<p class=\"note\">Left out of this page: {}.</p>\n", notes.join("; ")),
    }
}

/// One recording of the folder: when, how many turns, why it ended, its video.
fn part(material: &Material, at: usize, part: &Part) -> String {
    let next = material.trajectory.parts.get(at + 1).map_or(u32::MAX, |next| next.first_turn);
    let shown = material.turns.iter().filter(|told| (part.first_turn..next).contains(&told.number)).count();
    let turns = if part.ended.is_some() { part.turns as usize } else { shown };
    let end = match (&part.ended, part.reason) {
        (Some(ended), reason) => {
            let reason = reason.map_or_else(|| "no reason is noted".to_owned(), |reason| reason.to_string());
            format!("to {} · ended because: <b>{reason}</b>", clock(ended))
        }
        (None, _) => "<b>no end is noted: it goes on, or whoever recorded was killed</b>".to_owned(),
    };
    let dropped = match part.turns_dropped {
        0 => String::new(),
        count => format!(
            " · <b>not written, because the disk was too slow: {}</b>",
            counted(count as usize, "turn")
        ),
    };
    let video = part.video.as_ref().map(|video| {
        let name = line(&video.file);
        let link = match material.videos.contains(&video.file) {
            true => format!("<a href=\"{}{}\">{name}</a>", escape(&material.base), address(&video.file)),
            false => format!("{name} (the file is gone)"),
        };
        format!(
            " · video {link}: <bdi>{}</bdi>, {}×{}, at most {} frames a second",
            line(&video.scope),
            video.width,
            video.height,
            video.fps
        )
    });
    format!(
        "<li><time datetime=\"{}\">{}</time> {end} · {}{dropped}{}</li>",
        escape(&part.started),
        line(&part.started.replace('T', " ").replace('Z', " UTC")),
        counted(turns, "turn"),
        video.unwrap_or_default()
    )
}

/// The time of day of a moment.
fn clock(moment: &str) -> String {
    line(moment.get(11..23).unwrap_or(moment))
}

/// The recording in which a turn was made.
fn part_of(material: &Material, turn: u32) -> Option<&Part> {
    material.trajectory.parts.iter().rev().find(|part| part.first_turn <= turn)
}

/// Milliseconds from the beginning of its recording to a turn.
fn offset(material: &Material, action: &Action) -> Option<i64> {
    let part = part_of(material, action.turn)?;
    Some((milliseconds(&action.started)? - milliseconds(&part.started)?).max(0))
}

fn timeline(material: &Material, sessions: &Sessions) -> String {
    let mut out = String::from(
        "<nav class=\"timeline\" aria-label=\"Turns\"><div role=\"tablist\" aria-label=\"Turns\" aria-orientation=\"vertical\">\n",
    );
    for told in &material.turns {
        let number = told.number;
        let parts = &material.trajectory.parts;
        if parts.len() > 1
            && let Some(at) = parts.iter().position(|part| part.first_turn == number)
        {
            out += &format!("<p class=\"divider\" role=\"presentation\">Recording {}</p>", at + 1);
        }
        let outcome = Outcome::of(&told.action);
        let (tool, brief, when, chip) = match &told.action {
            Ok(action) => (
                line(&action.tool),
                words::brief(action),
                offset(material, action).map(seconds).unwrap_or_default(),
                sessions.chip(action.session.as_deref()),
            ),
            Err(_) => ("unreadable".to_owned(), String::new(), String::new(), String::new()),
        };
        out += &format!(
            "<a role=\"tab\" id=\"tab-{number}\" href=\"#turn-{number}\" aria-controls=\"turn-{number}\" class=\"{}\">\
             <span class=\"number\">{number}</span><span class=\"tool\">{tool}</span><span class=\"when\">{when}</span>\
             <span class=\"brief\">{brief}</span>{chip}<span class=\"outcome\">{}</span></a>\n",
            outcome.class(),
            outcome.label()
        );
    }
    out + "</div></nav>\n"
}

fn seconds(milliseconds: i64) -> String {
    let tenths = milliseconds / 100;
    match tenths {
        0..600 => format!("{}.{} s", tenths / 10, tenths % 10),
        _ => format!("{}:{:02}", tenths / 600, tenths / 10 % 60),
    }
}

fn turn(material: &Material, told: &Told, sessions: &Sessions) -> String {
    let number = told.number;
    let outcome = Outcome::of(&told.action);
    let badge = format!(
        "<span class=\"badge {}\" title=\"{}\">{}</span>",
        outcome.class(),
        outcome.meaning(),
        outcome.label()
    );
    let open = format!(
        "<section class=\"turn\" id=\"turn-{number}\" role=\"tabpanel\" aria-labelledby=\"tab-{number}\" tabindex=\"0\">\n"
    );
    let action = match &told.action {
        Ok(action) => action,
        Err(why) => {
            return format!(
                "{open}<h2>Turn {number} {badge}</h2>\n<p class=\"error\">{}</p>\n</section>\n",
                line(why)
            );
        }
    };
    let mut out = format!(
        "{open}<h2><span class=\"number\">{number}</span> {} <span class=\"brief\">{}</span> {badge}</h2>\n<p class=\"facts\">{}</p>\n",
        line(&action.tool),
        words::brief(action),
        facts(material, action, sessions)
    );
    if let Some(error) = &action.error {
        out += &format!(
            "<p class=\"error\"><code>{}</code> {}</p>\n",
            line(&error.code),
            escape(&shorten(&error.message, MAX_VALUE))
        );
    }
    out += "<div class=\"shots\">\n";
    out += &shot(material, told, action, "before");
    out += &shot(material, told, action, "after");
    out += "</div>\n";
    out += &details(told, action);
    out + "</section>\n"
}

fn facts(material: &Material, action: &Action, sessions: &Sessions) -> String {
    let mut facts =
        vec![format!("{} UTC", clock(&action.started)), format!("took {} ms", action.duration_ms)];
    if let Some(window) = &action.window {
        facts.push(format!(
            "window <bdi>“{}”</bdi> of <bdi>{}</bdi>",
            line(&shorten(&window.title, 120)),
            line(&window.app)
        ));
    }
    let video = part_of(material, action.turn).and_then(|part| part.video.as_ref());
    if let Some(video) = video.filter(|video| material.videos.contains(&video.file))
        && let Some(at) = offset(material, action)
    {
        facts.push(format!(
            "<a href=\"{}{}#t={}.{}\">in the video at about {}</a>",
            escape(&material.base),
            address(&video.file),
            at / 1000,
            at / 100 % 10,
            seconds(at)
        ));
    }
    let chip = sessions.chip(action.session.as_deref());
    if !chip.is_empty() {
        facts.insert(0, chip);
    }
    facts.join(" · ")
}

fn shot(material: &Material, told: &Told, action: &Action, side: &str) -> String {
    let (picture, shot, caption) = match side {
        "before" => (&told.before, &action.before, "Before"),
        _ => (&told.after, &action.after, "After"),
    };
    let number = told.number;
    let mut notes = String::new();
    let body = match (picture, shot) {
        (Picture::Shown(place), Shot::Taken { frame, width, height, .. }) => {
            notes = format!("{frame}");
            if side == "after" && told.before == *picture {
                notes += ", no pixel changed";
            }
            let outside = action.points.iter().filter(|point| !frame.contains(**point)).count();
            if outside > 0 {
                notes += ", it acted outside of what this shows";
            }
            format!(
                "<button type=\"button\" class=\"picture\" aria-label=\"{caption} turn {number}: enlarge\">\
                 <img data-picture=\"{place}\" width=\"{width}\" height=\"{height}\" alt=\"{caption} turn {number}\">{}</button>",
                marks(&action.points, frame)
            )
        }
        (Picture::LeftOut(file), _) => {
            let path = format!("{}/{}", turn_folder(number), address(file));
            format!(
                "<p class=\"missing\">Left out, as the page would be too large: <a href=\"{}{path}\">{path}</a></p>",
                escape(&material.base)
            )
        }
        (Picture::Missing(why), _) | (_, Shot::Missing { missing: why }) => {
            format!("<p class=\"missing\">No picture: {}</p>", line(&shorten(why, MAX_VALUE)))
        }
    };
    format!(
        "<figure class=\"{side}\"><figcaption><b>{caption}</b> <small>{notes}</small></figcaption>{body}</figure>\n"
    )
}

/// Rings around the points, and the way between two, at parts of the picture: they stay where they belong, and as large as
/// they are, at every size of it.
fn marks(points: &[Point], frame: &Rect) -> String {
    let along = |at: i32, start: i32, length: u32| {
        (f64::from(at) - f64::from(start) + 0.5) * 100.0 / f64::from(length.max(1))
    };
    let place = |point: &Point| (along(point.x, frame.x, frame.width), along(point.y, frame.y, frame.height));
    if !points.iter().any(|point| frame.contains(*point)) {
        return String::new();
    }
    let mut out = String::from("<svg class=\"marks\" aria-hidden=\"true\">");
    if let [from, to, ..] = points {
        let ((x1, y1), (x2, y2)) = (place(from), place(to));
        for class in ["halo", "way"] {
            out += &format!(
                "<line class=\"{class}\" x1=\"{x1:.4}%\" y1=\"{y1:.4}%\" x2=\"{x2:.4}%\" y2=\"{y2:.4}%\"/>"
            );
        }
        // Which way it went, in its middle: the angle is of screen pixels, which the picture keeps.
        let angle = f64::from(to.y - from.y).atan2(f64::from(to.x - from.x)).to_degrees();
        let (x, y) = (f64::midpoint(x1, x2), f64::midpoint(y1, y2));
        if from != to {
            out += &format!(
                "<svg x=\"{x:.4}%\" y=\"{y:.4}%\"><path class=\"arrow\" transform=\"rotate({angle:.1})\" d=\"M11 0L-7 9L-3 0L-7 -9Z\"/></svg>"
            );
        }
    }
    for (at, point) in points.iter().enumerate().filter(|(_, point)| frame.contains(**point)) {
        let (x, y) = place(point);
        // The end of a drag is filled.
        let dot = if at > 0 { 6 } else { 2 };
        out += &format!(
            "<svg x=\"{x:.4}%\" y=\"{y:.4}%\"><circle class=\"halo\" r=\"13\"/><circle class=\"ring\" r=\"13\"/>\
             <circle class=\"dot\" r=\"{dot}\"/></svg>"
        );
    }
    out + "</svg>"
}

fn details(told: &Told, action: &Action) -> String {
    let mut rows = String::new();
    let mut row = |name: &str, html: &str| rows += &format!("<div><dt>{name}</dt><dd>{html}</dd></div>\n");
    let arguments = Value::Object(action.arguments.clone());
    row("Arguments", &format!("<pre tabindex=\"0\">{}</pre>", json(&arguments)));
    if !action.withheld.is_empty() {
        let names: Vec<_> =
            action.withheld.iter().map(|name| format!("<code>{}</code>", line(name))).collect();
        row("Withheld", &format!("{}: it went, or may have gone, into a password field", names.join(", ")));
    }
    let outcome = Outcome::of(&told.action);
    let route = action.result.as_ref().and_then(|result| result["route"].as_str());
    let route = route.map(|route| format!(", by <code>{}</code>", line(route))).unwrap_or_default();
    row("Effect", &format!("{}: {}{route}", outcome.label(), outcome.meaning()));
    if let Some(hint) = action.result.as_ref().and_then(|result| result["hint"].as_str()) {
        row("Hint", &line(&shorten(hint, MAX_VALUE)));
    }
    if let [first, rest @ ..] = action.points.as_slice() {
        let to = rest.last().map(|to| format!(" to {}, {}", to.x, to.y)).unwrap_or_default();
        row("Point", &format!("{}, {}{to} <small>(screen pixels)</small>", first.x, first.y));
    }
    if let Some(window) = &action.window {
        row(
            "Window",
            &format!(
                "<bdi>“{}”</bdi>, <bdi>{}</bdi> <small>({}, {})</small>",
                line(&shorten(&window.title, MAX_VALUE)),
                line(&window.app),
                window.window_id.0,
                window.frame
            ),
        );
    }
    for element in &action.elements {
        row("Element", &words::path(&element.path));
    }
    let mut out = format!("<dl>{rows}</dl>\n");
    if let Some(result) = &action.result {
        out += &format!(
            "<details><summary>Answer</summary><pre tabindex=\"0\">{}</pre></details>\n",
            json(result)
        );
    }
    match told.tree {
        Tree::Shown(place) => {
            out += &format!(
                "<details data-tree=\"{place}\"><summary>Element tree</summary><pre tabindex=\"0\"></pre></details>\n"
            );
        }
        Tree::LeftOut => out += "<p class=\"missing\">The element tree is left out of this page.</p>\n",
        Tree::None => {}
    }
    out
}

/// A value as indented JSON, as HTML.
fn json(value: &Value) -> String {
    let text = serde_json::to_string_pretty(&words::shortened(value)).unwrap_or_default();
    escape(&shorten(&text, MAX_ANSWER))
}

/// Pictures and trees, which the script takes when they are to be seen.
fn data(material: &Material) -> String {
    let mut out = String::new();
    for (place, picture) in material.pictures.iter().enumerate() {
        out += &format!("<script type=\"text/plain\" id=\"picture-{place}\">");
        BASE64.encode_string(picture, &mut out);
        out += "</script>\n";
    }
    for (place, tree) in material.trees.iter().enumerate() {
        // Nothing ends the block before its end, and nothing in it is markup: base64 again.
        out += &format!("<script type=\"text/plain\" id=\"tree-{place}\">");
        BASE64.encode_string(visible(tree), &mut out);
        out += "</script>\n";
    }
    out
}

/// A text that is put in as text: only what turns it around is spelled out.
fn visible(text: &str) -> String {
    let undo = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    undo.iter().fold(escape(text), |text, (from, to)| text.replace(from, to))
}

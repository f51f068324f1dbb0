//! The visible cells of a table with very many.
//!
//! A spreadsheet counts 2,147,483,647 children and creates an object for each one that is asked for, so cells are
//! asked for by row and column, between those that lie in the table's visible corners.

use std::collections::HashSet;

use tokio::time::Instant;

use deskhand_core::desktop::ElementId;
use deskhand_core::geometry::Rect;

use super::app::{ACCESSIBLE, App, Failure};
use super::bus::{Bus, CallError};
use super::cells;
use super::extents;
use super::walk::{self, Listing, Walk, reference};
use super::wire::Facts;

/// Cells that are read at most; a 4K screen full of small cells has fewer.
const CELLS: usize = 6_000;
/// Ancestors whose frames are taken into account for what is visible.
const ANCESTORS: usize = 6;
/// How far into the table corners are looked for: headers and borders are not cells.
const STEPS: [i32; 7] = [1, 4, 12, 24, 40, 64, 96];

pub(super) const TABLE: &str = "org.a11y.atspi.Table";
const COMPONENT: &str = "org.a11y.atspi.Component";

/// Rows and columns, both ends included.
type Range = ((i32, i32), (i32, i32));

/// The visible cells of `table`, row by row, and how many of its `count` cells that leaves.
pub(super) async fn visible(walk: &Walk<'_>, table: &ElementId, count: i32) -> Result<Listing, Failure> {
    let app = walk.bus.apps().get(&table.owner);
    let listing = |cells: Vec<(ElementId, Facts)>| {
        let unread = u64::try_from(count).unwrap_or(0).saturating_sub(cells.len() as u64);
        let children = cells.iter().map(|(id, _)| id.clone()).collect();
        Listing { children, unread, facts: cells }
    };
    let Some(area) = visible_area(walk, &app, table).await? else { return Ok(listing(Vec::new())) };
    let sheet = cells::Reading::of(walk.bus, &app, table, walk.until).await?;
    let reader = Table { bus: walk.bus, app: &app, table, sheet, until: walk.until };
    let Some((first, last)) = reader.range(area).await? else { return Ok(listing(Vec::new())) };
    // The cells of one such table are alike but for name and states: one of them stands for the rest.
    let Some(corner) = reader.cell(first.0, first.1).await? else { return Ok(listing(Vec::new())) };
    let alike = walk::facts(walk.bus, &corner, walk.until).await?;
    let places = (first.0..=last.0).flat_map(|row| (first.1..=last.1).map(move |column| (row, column)));
    let asked = places.take(CELLS).map(|(row, column)| reader.cell_with_facts(row, column, &alike));
    let cells = futures_util::future::join_all(asked).await;
    let mut found = Vec::with_capacity(cells.len());
    let mut seen = HashSet::new();
    for cell in cells {
        // Merged cells come once for each place that they cover.
        match cell {
            Ok(Some((id, facts))) if seen.insert(id.clone()) => found.push((id, facts)),
            Err(Failure::Silent(silence)) => return Err(Failure::Silent(silence)),
            _ => {}
        }
    }
    Ok(listing(found))
}

/// The part of the table that its ancestors do not cut off, in the toolkit's screen coordinates.
async fn visible_area(walk: &Walk<'_>, app: &App, table: &ElementId) -> Result<Option<Rect>, Failure> {
    let mut chain = vec![table.clone()];
    {
        let memory = walk.app.memory();
        while let Some(parent) = chain.last().and_then(|id| memory.mirror.parent(id)) {
            if chain.len() > ANCESTORS {
                break;
            }
            chain.push(parent.clone());
        }
    }
    let asked = chain.iter().map(|id| extents::ask(walk.bus, app, id, extents::SCREEN, walk.until));
    let frames = futures_util::future::join_all(asked).await;
    let mut frames = frames.into_iter();
    let Some(own) = frames.next().transpose()?.flatten() else { return Ok(None) };
    let mut area = own;
    for frame in frames.filter_map(|frame| frame.ok().flatten()) {
        // An ancestor that has nothing to do with the table's place (a frame at 0,0) is no limit.
        area = area.intersection(&frame).unwrap_or(area);
    }
    Ok((!area.is_empty()).then_some(area))
}

struct Table<'a> {
    bus: &'a Bus,
    app: &'a App,
    table: &'a ElementId,
    /// Where the table is one of a spreadsheet.
    sheet: Option<cells::Reading<'a>>,
    until: Instant,
}

impl Table<'_> {
    /// The cells in the corners of `area`.
    async fn range(&self, area: Rect) -> Result<Option<Range>, Failure> {
        let right = i32::try_from(area.right() - 1).unwrap_or(i32::MAX);
        let bottom = i32::try_from(area.bottom() - 1).unwrap_or(i32::MAX);
        let (first, last) = tokio::join!(self.near(area.x, area.y, 1), self.near(right, bottom, -1));
        match (first?, last?) {
            (Some(first), Some(last)) => Ok(Some((first, (last.0.max(first.0), last.1.max(first.1))))),
            (Some(first), None) => {
                // The table ends before its area does.
                let (rows, columns) = self.size().await?;
                Ok(Some((first, ((rows - 1).max(first.0), (columns - 1).max(first.1)))))
            }
            _ => Ok(None),
        }
    }

    async fn near(&self, x: i32, y: i32, direction: i32) -> Result<Option<(i32, i32)>, Failure> {
        for step in STEPS {
            let point = (x.saturating_add(step * direction), y.saturating_add(step * direction));
            if let Some(place) = self.place_at(point).await? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    async fn place_at(&self, (x, y): (i32, i32)) -> Result<Option<(i32, i32)>, Failure> {
        let body = (x, y, extents::SCREEN);
        let object = &self.table.object;
        let reply =
            self.app.ask(self.bus, object, COMPONENT, "GetAccessibleAtPoint", &body, self.until).await;
        let Some(cell) = absent(reply)?.map(|reply| reference(&reply)).transpose()?.flatten() else {
            return Ok(None);
        };
        if cell == *self.table {
            return Ok(None);
        }
        if self.sheet.is_some() {
            // The index of a cell further down is larger than an index can be.
            let name = self.app.property::<String>(self.bus, &cell.object, ACCESSIBLE, "Name", self.until);
            if let Some(place) = absent(name.await)?.as_deref().and_then(cells::address) {
                return Ok(Some(place));
            }
        }
        let index = self.app.ask_for::<i32, _>(
            self.bus,
            &cell.object,
            ACCESSIBLE,
            "GetIndexInParent",
            &(),
            self.until,
        );
        let Some(index) = absent(index.await)?.filter(|index| *index >= 0) else { return Ok(None) };
        let index = (index,);
        let place = |member| self.app.ask_for::<i32, _>(self.bus, object, TABLE, member, &index, self.until);
        let (row, column) = tokio::join!(place("GetRowAtIndex"), place("GetColumnAtIndex"));
        match (absent(row)?, absent(column)?) {
            (Some(row), Some(column)) if row >= 0 && column >= 0 => Ok(Some((row, column))),
            _ => Ok(None),
        }
    }

    async fn size(&self) -> Result<(i32, i32), Failure> {
        let number = |name| self.app.property::<i32>(self.bus, &self.table.object, TABLE, name, self.until);
        let (rows, columns) = tokio::join!(number("NRows"), number("NColumns"));
        Ok((rows?, columns?))
    }

    async fn cell(&self, row: i32, column: i32) -> Result<Option<ElementId>, Failure> {
        let body = (row, column);
        let object = &self.table.object;
        let reply = self.app.ask(self.bus, object, TABLE, "GetAccessibleAt", &body, self.until).await?;
        reference(&reply)
    }
}

impl Table<'_> {
    async fn cell_with_facts(
        &self,
        row: i32,
        column: i32,
        alike: &Facts,
    ) -> Result<Option<(ElementId, Facts)>, Failure> {
        let Some(id) = self.cell(row, column).await? else { return Ok(None) };
        let id = match &self.sheet {
            Some(sheet) => sheet.element(row, column, id),
            None => id,
        };
        let (name, states) = walk::name_and_states(self.bus, &id, self.until).await?;
        let facts = Facts { name, states, description: String::new(), ..alike.clone() };
        Ok(Some((id, facts)))
    }
}

/// An error for one object is no answer; silence is an error.
fn absent<T>(answer: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Failure::Object(CallError::Malformed(_) | CallError::Refused { .. })) => Ok(None),
        Err(failure) => Err(failure),
    }
}

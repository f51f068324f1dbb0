//! Writing without the keyboard.

use std::time::Duration;

use super::Arguments;
use super::field::{self, Wanted, expected, shown};
use crate::desktop::{PortError, State, Text};
use crate::effect::{Delivery, Effect, EffectReport, Patience, Route};
use crate::engine::Context;
use crate::error::Result;
use crate::tools::Element;

/// How long a toolkit that said yes may take to show it: browsers write in another process.
const WRITE_WAIT: Duration = Duration::from_millis(150);

/// Writes through the accessibility interfaces and reads back. `None`: the element cannot, or did not.
pub(super) async fn write(
    context: &Context,
    arguments: &Arguments,
    element: &Element,
) -> Result<Option<EffectReport>> {
    let single_line = !element.node.states.has(State::MultiLine);
    if !element.node.interfaces.editable_text || (single_line && arguments.text.contains(char::is_control)) {
        return Ok(None);
    }
    let Some(before) = field::read(context, element).await? else {
        // A password field shows nothing back: real keys are the surer way, unless they are ruled out.
        return if arguments.delivery == Some(Delivery::Background) {
            write_blind(context, arguments, element).await
        } else {
            Ok(None)
        };
    };
    let focused = element.node.states.has(State::Focused);
    let wanted = expected(&before, &arguments.text, arguments.clear == Some(true), focused);
    let Some(wanted) = wanted else { return Ok(None) };
    let accessibility = &context.desktop().accessibility;
    let replaces = arguments.clear == Some(true) || before.selections.iter().any(|(start, end)| end > start);
    let claim = if replaces {
        accessibility.set_text(element.id(), &wanted.content).await
    } else {
        accessibility.insert_text(element.id(), wanted.at, &arguments.text).await
    };
    match claim {
        Ok(_) => {}
        Err(PortError::NotSupported(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let report = |effect| {
        EffectReport::new(effect, Route::AxText)
            .in_window(Some(element.window.id))
            .on(element)
            .from(shown(&before.content))
    };
    let unverifiable = |hint| report(Effect::Unverifiable).hint(hint);
    let after = match written(context, element, &before, &wanted).await {
        Ok(Some(after)) => after,
        // What may have been written is never written again.
        Ok(None) | Err(_) => {
            return Ok(Some(unverifiable("it was accepted, and the field cannot be read any more")));
        }
    };
    Ok(match after.content {
        content if content == wanted.content => {
            Some(report(Effect::Confirmed).between(&before.content, &content))
        }
        // The toolkit said yes and did nothing, as some do.
        content if content == before.content => None,
        content => {
            let hint = "the field holds something else than was written: it may format or check its content";
            Some(unverifiable(hint).between(&before.content, &content))
        }
    })
}

/// Reads a field until it shows what was written, or something else than before, or nothing for [`WRITE_WAIT`].
async fn written(
    context: &Context,
    element: &Element,
    before: &Text,
    wanted: &Wanted,
) -> Result<Option<Text>> {
    let mut patience = Patience::start(context, WRITE_WAIT).await?;
    loop {
        let after = field::read(context, element).await?;
        let same = after
            .as_ref()
            .is_some_and(|after| after.content == before.content && wanted.content != before.content);
        if !same {
            return Ok(after);
        }
        if !patience.another_look(context).await {
            return field::read(context, element).await;
        }
    }
}

async fn write_blind(
    context: &Context,
    arguments: &Arguments,
    element: &Element,
) -> Result<Option<EffectReport>> {
    let accessibility = &context.desktop().accessibility;
    let claim = if arguments.clear == Some(true) {
        accessibility.set_text(element.id(), &arguments.text).await
    } else {
        accessibility.insert_text(element.id(), 0, &arguments.text).await
    };
    match claim {
        Ok(true) => Ok(Some(
            EffectReport::new(Effect::Unverifiable, Route::AxText)
                .in_window(Some(element.window.id))
                .hint("a password field cannot be read back"),
        )),
        Ok(false) | Err(PortError::NotSupported(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

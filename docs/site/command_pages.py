"""The pages of the command line, made from its parsers."""

import argparse
import functools
import html
import re
from collections.abc import Iterator

from elmo_tf import cli
from elmo_tf.cli import jobs


@functools.cache
def pages() -> dict[str, str]:
    """Returns the pages by path: `cli/index.md`, and one for each command, for `task` one for each system."""
    return dict(_pages(cli._parser()))


def _pages(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Yields the page of a command, and those of its commands if these have commands, too."""
    commands, text = _commands(parser), f"# {parser.prog}\n\n{_about(parser)}"
    below = any(_commands(command) for _, command in commands.values())
    for name, (summary, command) in commands.items():
        link = f"[`{name}`]({_path(command)[4:]})\n:   {_markdown(summary)}\n\n"
        text += link if below else f"## {command.prog}\n\n{_about(command)}"
    yield _path(parser), text
    for _, command in commands.values() if below else ():
        yield from _pages(command)


def _path(parser: argparse.ArgumentParser) -> str:
    return f"cli/{'-'.join(parser.prog.split()[1:]) or 'index'}.md"


def _commands(parser: argparse.ArgumentParser) -> dict[str, tuple[str, argparse.ArgumentParser]]:
    """Returns the summary and the parser of each command; `preprocess` and `embed` make theirs when they run."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            made = {name: jobs._parser(name) for name in jobs._JOBS if name in action.choices}
            return {each.dest: (each.help, (action.choices | made)[each.dest]) for each in action._choices_actions}
    return {}


def _about(parser: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(parser.prog, width=72)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups)
    about = parser.description or ""
    text = f"{_markdown(about[:1].upper() + about[1:])}\n\n```text\n{formatter.format_help()}```\n\n"
    for action in parser._actions:
        if action.help not in (None, argparse.SUPPRESS) and action.dest != "help":
            required = " (required)" if action.option_strings and action.required else ""
            term, help_text = formatter._format_action_invocation(action), formatter._expand_help(action)
            text += f"`{term}`{required}\n:   {_markdown(help_text)}\n\n"
    return text + f"{_markdown(parser.epilog or '')}\n\n"


def _markdown(text: str) -> str:
    """Returns a parser's text, which is Markdown only in backquotes, as Markdown: options as code, pages as links."""
    parts = re.split("(`.*?`)", text)
    for index, plain in enumerate(parts[::2]):
        escaped = re.sub(r"([*_|[\]])", r"\\\1", html.escape(plain, quote=False))
        parts[2 * index] = re.sub(r"(?<![\w-])--[a-z-]+", r"`\g<0>`", escaped)
    return re.sub(r"docs/[\w-]+\.md", r"[\g<0>](../\g<0>)", "".join(parts))

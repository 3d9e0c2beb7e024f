"""Terms of law between quotes: whether each is translated as it is alone, and the quotes are whole.

python eval/quoted_terms.py [--model models/law-transformer.en-fr]

Twenty terms stand in a definition, in curly and in straight quotes. One is right where the
translation has one of its French terms, as given here, between quotes that open and close."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import torch

from tmnmt.translator import Translator

TERMS = {
    "permit": "permis|licence",
    "licence": "licence|permis",
    "owner": "propriétaire",
    "inspector": "inspecteur",
    "vessel": "bâtiment|navire|bateau",
    "aircraft": "aéronef",
    "employer": "employeur",
    "employee": "employé",
    "minister": "ministre",
    "application": "demande",
    "offence": "infraction",
    "penalty": "pénalité|peine|sanction",
    "certificate": "certificat",
    "agreement": "accord|entente",
    "corporation": "société|personne morale",
    "property": "bien|biens|propriété",
    "court": "tribunal|cour",
    "contract": "contrat|marché",
    "regulation": "règlement",
    "pension": "pension",
}
TEMPLATES = (
    "In this Act, {} means what the Minister says.",
    "The word {} in section 3 is replaced.",
)
QUOTES = {"curly": "“{}”", "straight": '"{}"'}
_QUOTED = "(?:«\\s*|“)(?:{})(?:\\s*»|”)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, default=Path("models/law-transformer.en-fr"))
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    translator = Translator.load(options.model)
    for name, quotes in QUOTES.items():
        for template in TEMPLATES:
            sources = [template.format(quotes.format(term)) for term in TERMS]
            targets = [translation.tgt for translation in translator.translate(sources)]
            right = [
                re.search(_QUOTED.format(wanted), target) is not None
                for wanted, target in zip(TERMS.values(), targets, strict=True)
            ]
            if options.show:
                for source, target, is_right in zip(sources, targets, right, strict=True):
                    print(is_right, source, "|", target)
            print(json.dumps({"quotes": name, "template": template, "right": sum(right)}))


if __name__ == "__main__":
    main()

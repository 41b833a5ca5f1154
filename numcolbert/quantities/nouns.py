"""Counted nouns: which words after a number name counted things, and their singular."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Split a list of words.

    Parameters
    ----------
    text
        Words between spaces.

    Returns
    -------
    frozenset of str
    """
    return frozenset(text.split())


_IRREGULAR = {
    "people": "person", "children": "child", "men": "man", "women": "woman", "lives": "life", "feet": "foot",
    "teeth": "tooth", "mice": "mouse", "geese": "goose", "wives": "wife", "halves": "half", "leaves": "leaf",
    "businesses": "business", "analyses": "analysis", "diagnoses": "diagnosis", "crises": "crisis",
    "persons": "person", "data": "data", "aircraft": "aircraft", "cattle": "cattle", "staff": "staff", "sheep": "sheep",
    "series": "series", "species": "species", "fish": "fish", "movies": "movie", "cookies": "cookie", "ties": "tie",
    "buses": "bus", "gases": "gas", "viruses": "virus", "bonuses": "bonus", "statuses": "status", "houses": "house",
    "warehouses": "warehouse", "bases": "base", "cases": "case", "courses": "course", "nurses": "nurse",
    "purchases": "purchase", "increases": "increase", "responses": "response", "doses": "dose", "phases": "phase",
    "licenses": "license", "leases": "lease", "expenses": "expense", "offenses": "offense", "axes": "axis",
    "criteria": "criterion", "shelves": "shelf", "households": "household", "fiancées": "fiancée",
    "headcount": "headcount", "horses": "horse", "releases": "release", "diseases": "disease", "premises": "premise",
    "exercises": "exercise", "franchises": "franchise", "enterprises": "enterprise", "causes": "cause",
    "clauses": "clause", "pulses": "pulse", "relapses": "relapse", "lenses": "lens", "caches": "cache",
    "spacecraft": "spacecraft", "head": "head", "personnel": "personnel", "offspring": "offspring",
    "knives": "knife", "wolves": "wolf", "loaves": "loaf", "thieves": "thief", "calves": "calf",
    "tranches": "tranche", "headaches": "headache", "niches": "niche", "axles": "axle",
}  # fmt: skip

# Singular nouns that are counted so often that they may stand behind an adjective ("200 adult patients"), behind a
# hyphen ("a 12-item scale") or alone after "one".
_COMMON = word_set("""
beat breath cell copy account adult admission aircraft animal apartment arm article asset baby bag bale bank barrel
bed bond book bottle box boy branch brand building bus calf capsule car cargo carton case cell center centre child
church city claim clinic club code company component computer consumer contract copy country couple course creditor
crew customer cycle dealer death debenture director doctor dose driver drop egg elderly election employee employer
employment engine episode equation event executive factory family farm farmer fatality female field film firm fish
flight foal fund game garden girl group head hectare hen hog holder home horse hospital hotel household house
individual infant infection injection injury institution investigator investor issue item job judge kid lamp lawsuit
lawyer lender life line loan location lot machine male man manager market meeting member microarray mine mortgage
mouse movie nation night nurse office officer option order outlet owner package page pair panel parcel parent
participant partner party passenger patient penny people person phone physician piece pig pill plane plant player
pocket point policy policyholder port position product project property province question rat refinery region layer
seat door resident respondent responder restaurant room route sailor sample school seat sector session share
shareholder sheep ship shipment shop sibling site smoker soldier species staff stage state station stock store
street strike student study subject subscriber subsidiary supermarket supplier survivor system tablet tanker
taxpayer teacher team terminal test theatre ticket time train trial tree truck tumor twin unit university user van
vehicle vessel vial village visit visitor volunteer vote voter warrant warehouse well woman word worker workstation
year zone
""")

# Words that end in s (or look like a plural) and never name counted things after a number.
_NOT_NOUNS = word_set("""
is was has does this its his hers theirs ours yours us as less plus minus versus vs yes thus always perhaps across
towards besides sometimes afterwards previous various afterward backwards forwards upwards downwards onwards besides
unless whereas ours os sales earnings says shows remains rises falls gains comes goes gets gives takes makes runs
represents includes indicates suggests means occurs requires needs seems appears reflects follows becomes begins
continues ends exists differs corresponds compares receives equals exceeds contains provides applies helps lies
stands overseas respectively news mathematics physics economics politics statistics plc inc corp perhaps
nevertheless nonetheless is. alias bias basis axis status focus consensus surplus plus gross across express business
process access success loss press mass class pass cross less ness address congress progress excess stress analysis
diagnosis hypothesis thesis crisis emphasis apparatus virus campus bonus census corpus locus nexus radius sinus
versus jones reuters dow charles james texas kansas arkansas illinois thomas paris los des les las mars venus aids
diabetes rabies herpes measles mumps scabies hers whose those these because else otherwise
""")


_INVARIANT = word_set("aircraft spacecraft sheep fish species staff series cattle head offspring personnel")


def _singular(noun: str) -> str:
    if noun.endswith("ies") and len(noun) > 4:
        return noun[:-3] + "y"
    if noun.endswith(("xes", "ches", "shes", "sses", "zzes", "oes")):
        return noun[:-2]
    return noun[:-1]


class _CountNouns:
    """Tables of counted nouns, with what they derive."""

    def __init__(self) -> None:
        self.common: dict[str, str] = {}
        self._plurals: dict[str, str] = {}
        for plural, singular in _IRREGULAR.items():
            self._plurals.setdefault(singular, plural)
        for noun in _COMMON:
            self.common[noun] = self.common.get(noun, noun)
            self.common[self.plural_of(noun)] = noun
        for plural in (
            "people",
            "children",
            "men",
            "women",
            "lives",
            "persons",
            "cases",
            "responses",
            "doses",
            "nurses",
        ):
            self.common[plural] = _IRREGULAR[plural]
        self.common.update((noun, noun) for noun in _INVARIANT)
        self.common.update({"shrs": "share", "pts": "point", "wks": "week", "peoples": "people"})
        self._uncounted = {noun for noun, singular in self.common.items() if noun == singular} - _INVARIANT

    def plural_of(self, noun: str) -> str:
        """Give the plural of a singular noun."""
        if noun in self._plurals:
            return self._plurals[noun]
        if noun.endswith("y") and noun[-2:-1] not in "aeiou":
            return noun[:-1] + "ies"
        return noun + ("es" if noun.endswith(("s", "x", "ch", "sh", "zz")) else "s")

    def singular_of(self, word: str) -> str | None:
        """Give the singular of a word that may follow a number as a counted noun, None if it is no plural noun."""
        if word in self._uncounted:
            return None
        if word in self.common:
            return self.common[word]
        if word in _IRREGULAR:
            return _IRREGULAR[word]
        front, hyphen, last = word.rpartition("-")
        if hyphen and last in _IRREGULAR:  # "half-lives"
            return front + hyphen + _IRREGULAR[last]
        if not word.endswith("s") or len(word) < 4 or word in _NOT_NOUNS or word.endswith(("ss", "ous", "us", "is")):
            return None
        return _singular(word)


COUNT_NOUNS = _CountNouns()

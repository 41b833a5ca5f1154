"""Words that tell a noun phrase from the rest of a sentence: closed lists and suffixes, no model."""

from __future__ import annotations

import re
from functools import lru_cache


def split_words(words: str) -> list[str]:
    """Words of a white-space separated list."""
    return words.split()


FUNCTION_WORDS = frozenset(
    split_words(
        """
    a an the this that these those its it his her hers their theirs our ours my your yours he she they we you i
    me him them us who whom whose which what when where why how there here of in on at to from by for with
    without within into onto upon over under above below between among amongst across through throughout during
    since until till after before behind beyond about against along around as than per via toward towards off
    out up down near despite except including excluding plus minus versus vs like unlike unless because although
    though while whereas if whether and or but nor so yet not no only also both either neither each every all
    any some few several many much more most less least fewer such same other another one two three four five
    six seven eight nine ten eleven twelve dozen hundred thousand million billion trillion mln bln mn bn half is
    are was were be been being am has have had having do does did done can could may might must shall should
    will would ought need let very too quite rather just even still already again once twice ever never always
    often sometimes now then today yesterday tomorrow tonight ago later earlier soon recently currently
    previously formerly approximately roughly nearly almost exactly well further however therefore thus hence
    moreover meanwhile instead otherwise respectively together apart ahead away back aside overall approx ca i.e
    e.g etc et al et. first second third fourth fifth last next previous latest recent prior past new old former
    late early following subsequent initial final own total certain various different similar high low higher
    lower highest lowest large small larger smaller largest smallest big bigger biggest good better best great
    greater greatest long short longer shorter strong weak major minor main key significant substantial mean
    median respective available possible likely due able ready subject equal equivalent close compared relative
    according corresponding north south outstanding worth underway year-on-year year-to-year month-on-month
    aggregate th nd rd eg year-ago year-earlier owe owed owes invest invests estimated additional entire
    provisional annualized annualised ie vis mid non aged younger older nearest bid tid qd t.i.d b.i.d i.v c.i
    p.o iv im sc po far

    """
    )
)
"""Words that never stand in a concept."""

_VERBS = split_words(
    """
    accept account achieve acquire add adjust administer affect agree aim allocate allow amount analyse analyze
    announce anticipate appear apply approve arrange ask assess assign assume attain attribute authorize average
    become begin believe boost bring build buy calculate call cancel carry cause choose cite claim climb close
    come commence compare complete comprise compute conclude conduct confirm consider consist contain continue
    contribute convert cover create cut decide declare decrease defer define deliver deny derive describe detect
    determine develop die discontinue discuss disclose dismiss divide double drop earn edge elect eliminate
    employ end enable enrol enroll ensure enter equal establish estimate evaluate exceed exclude exercise exist
    expand expect experience expire explain export extend face fail fall feel file fill finance find fix follow
    force forecast form gain generate get give go grow happen hear help hit hold import improve include increase
    indicate infuse inject involve invite issue join jump keep know last lead learn leave lift link list lose
    lower maintain make match mature mean measure meet move name negotiate note notify obtain occur offer open
    operate order outline outpace own participate pay perform place plan plunge point post predict prefer
    prepare present prevent propose prove provide publish purchase pursue quote raise randomise randomize range
    reach react read realise realize recall receive recommend record recover recruit redeem reduce refer reflect
    refuse reject release rely remain remove repay replace report represent require resign respond result retain
    retire return reveal reverse revise rise run save say schedule screen see seek seem select sell send serve
    set settle shed show sign slip slow soar speak spend stand start state stay stop strengthen study submit
    suffer suggest support surge surpass take talk tell tender think top total trade treat trim try tumble turn
    understand undergo undertake urge use vary vote want warn weaken weigh withdraw win work worsen write yield

    """
)
_IRREGULAR = split_words(
    """
    rose risen fell fallen came become became began begun bought brought built chose chosen cut did done drew
    drawn fed felt found gave given went gone grew grown heard held kept knew known led left lost made meant met
    paid put ran read said saw seen sold sent set showed shown shrank slid spent spoke stood stuck took taken
    told thought understood withdrew withdrawn won wrote written underwent undertook undertaken says hit lay
    laid lain sought

    """
)
# Words of the verb list that are nouns at least as often where quantities are.
_ALSO_NOUNS = frozenset(
    split_words(
        """
    account accounts claim claims cover export exports import imports finance forecast gain gains increase
    increases decrease decreases issue issues loss offer offers offering offerings order orders output plan
    plans purchase purchases range ranges record rate rates reserve return returns rise rises result results run
    runs sale sales share shares spread stake state states study studies support surge surplus tender trade
    trades trading yield yields work use drop drops cut cuts fall falls need weight release list place point
    points post top start end lead lift vote votes operating earnings spending lending borrowing borrowings
    financing funding holding holdings saving savings building opening refining manufacturing mining shipping
    banking pricing planning processing drilling housing clearing rating ratings meeting meetings crossing
    crushings plantings planting sowings winnings bidding screening smoking drinking testing training feeding
    counselling counseling dosing fasting reading readings swelling bleeding vomiting walking loading cutting
    beginning closing fixed note notes starts

    """
    )
)


def _inflect(verb: str) -> set[str]:
    forms = {verb, verb + "s", verb + "ed", verb + "ing"}
    if verb.endswith("e"):
        forms |= {verb + "d", verb[:-1] + "ing"}
    if verb.endswith("y"):
        forms |= {verb[:-1] + "ies", verb[:-1] + "ied"}
    if verb.endswith(("s", "x", "ch", "sh")):
        forms.add(verb + "es")
    if verb[-1] in "bdglmnprt" and len(verb) > 2:
        forms |= {verb + verb[-1] + "ed", verb + verb[-1] + "ing"}
    return forms


STATIVE_VERBS = frozenset(["is", "are", "was", "were", "be", "been", "being", "has", "had", "have"]).union(
    *map(_inflect, split_words("average total exceed range last reach equal remain take vary measure amount require")),
    ["ranging", "lasting", "averaging", "took", "taken"],
)
"""Verbs that give their subject a value."""

MEASURING_VERBS = STATIVE_VERBS.union(
    *map(
        _inflect,
        split_words(
            """
    rise fall increase decrease decline drop gain climb jump grow slip ease surge soar plunge tumble edge advance
    widen narrow shrink expand raise lower cut reduce estimate forecast project put set value price fix quote trade
    stand come hit stay stabilize run show compare account represent total improve double worsen revise expect
    close open end start move
    """
        ),
    ),
    split_words("rose risen fell fallen grew grown shrank stood came slid"),
)
"""Verbs that give their subject a value or move it to one."""

VERB_FORMS = frozenset(set().union(*map(_inflect, _VERBS)) | set(_IRREGULAR)) - _ALSO_NOUNS
"""Inflected verbs that end a noun phrase."""

TIME_WORDS = frozenset(
    split_words(
        """
    year years month months week weeks day days hour hours minute minutes quarter quarters period half qtr
    year-end january february march april may june july august september october november december monday
    tuesday wednesday thursday friday saturday sunday jan feb mar apr jun jul aug sept sep oct nov dec year's
    month's week's

    """
    )
)
"""Words that cannot begin a concept."""

GENERIC_HEADS = frozenset(
    split_words(
        """
    year years month months week weeks day days hour hours minute minutes second seconds quarter quarters period
    periods time times date dates season january february march april may june july august september october
    november december jan feb mar apr jun jul aug sept sep oct nov dec monday tuesday wednesday thursday friday
    saturday sunday morning afternoon evening night end start beginning amount amounts number numbers level
    levels value values figure figures total totals part parts portion rest remainder majority maximum minimum
    range ranges series kind type types form way ways case cases thing things example basis increase increases
    decrease decreases rise rises fall falls drop drops decline declines gain change changes cut cuts difference
    differences rate-of addition result results record estimate estimates forecast forecasts reuter reuters
    spokesman spokeswoman analyst analysts official officials chairman president minister ministers company
    companies corp inc co ltd plc group firm department ministry government sources source statement report
    reports comparison contrast view term terms line order place point points plan plans agreement accord deal
    talks question lot bit couple pair pct percent percentage dlrs dlr dollars cts cent cents stg yen mark marks
    francs lire mln bln table tables fig figs section supplementary supplement ref refs reference references
    appendix copyright author authors article articles data analysis analyses study studies trial trials method
    methods conclusion conclusions background objective objectives introduction discussion groups arm arms ci sd
    se sem iqr p n vs means people person item items use effect effects step steps visit visits assessment
    management business market markets system systems notice calendar country countries world nation state
    states city qtr qtrs half halves hand hands name names list lists event events member members operation
    operations worth sum sums bonds-with average averages underway purchase purchases accordance denomination
    denominations more less north south east west side top bottom others

    """
    )
)
"""Heads that name no quantity a person would search for."""

_ADJECTIVE = re.compile(r"(?:al|ive|ous|able|ible|ary|ful|less|ic|ish|er-than)$")
_NOUN_ENDING = frozenset(
    split_words(
        """
    capital total rental hospital animal metal proposal withdrawal approval material mineral signal interval
    removal renewal arrival disposal principal deal oil coal goal meal cereal portal referral terminal arsenal
    survival festival retail trial incentive initiative executive derivative reserve preventive additive salary
    subsidiary library boundary summary secretary treasury capillary artery vegetable receivable payable
    variable cable table arsenic traffic fabric clinic topic metric music public plastic ceramic antibiotic
    anesthetic diuretic traditional stainless olive drive five active dive hive live native detective fiduciary
    beneficiary dictionary adversary ovary ad-lib renal credential residual potential manual annual individual
    journal canal pal

    """
    )
) - {"annual", "traditional", "renal", "active", "native", "public", "individual", "potential"}


def is_adjective(word: str) -> bool:
    """Whether a lower-case word, by its ending, is an adjective and cannot head a noun phrase.

    Examples
    --------
    >>> is_adjective("annual"), is_adjective("capital")
    (True, False)
    """
    return word in _PLAIN_ADJECTIVES or (_ADJECTIVE.search(word) is not None and word not in _NOUN_ENDING)


_PLAIN_ADJECTIVES = frozenset(
    split_words(
        """
    common net gross senior junior joint foreign domestic main prime spare raw crude-free non-food dry wet free
    full empty elderly obese young healthy sick active passive severe moderate mild acute standard daily weekly
    monthly quarterly yearly hourly twice-daily once-daily male female adult pretax pre-tax after-tax oral open
    double single triple adjusted worldwide nationwide overseas ordinary preferred convertible

    """
    )
)
_KEEP_LY = frozenset(
    [
        "supply",
        "monthly",
        "weekly",
        "daily",
        "quarterly",
        "yearly",
        "hourly",
        "family",
        "assembly",
        "anomaly",
        "monopoly",
        "early",
    ]
)
_SINGULAR_S = re.compile(r"(?:ss|us|is|ics|ous|sis)$")
_KEEP_S = frozenset(
    split_words(
        """
    earnings series species news gas basis sales assets mercs diabetes means less gross always perhaps plus
    bonus

    """
    )
)


@lru_cache(maxsize=200_000)
def is_break(word: str) -> bool:
    """Whether a lower-case word cannot stand inside a noun phrase.

    Examples
    --------
    >>> [word for word in "total oil output of the fields rose sharply".split() if not is_break(word)]
    ['oil', 'output', 'fields']
    """
    if word in _ALSO_NOUNS:
        return False
    if word in FUNCTION_WORDS or word in VERB_FORMS or len(word) < 2:
        return True
    if word.endswith("ly") and word not in _KEEP_LY:
        return True
    if word.endswith("ed") and len(word) > 4 and not word.endswith(("eed", "red-cell", "bed", "shed", "seed")):
        return True
    return word.endswith("ing") and len(word) > 5 and word not in ("swing", "spring", "string", "sterling", "evening")


@lru_cache(maxsize=200_000)
def lemma(word: str) -> str:
    """Lower-case singular of a noun, by its ending.

    Examples
    --------
    >>> [lemma(word) for word in ("Profits", "companies", "losses", "gas", "analysis", "taxes", "prices")]
    ['profit', 'company', 'loss', 'gas', 'analysis', 'tax', 'price']
    """
    word = word.lower()
    if len(word) < 4 or not word.endswith("s") or word in _KEEP_S or _SINGULAR_S.search(word):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    if word.endswith("'s"):
        return word[:-2]
    return word[:-1]

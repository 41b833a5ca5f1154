"""Finance: companies, what they earn, owe, spend, employ, own and produce."""

from __future__ import annotations

from numcolbert.corpus.builtin.generator import Concept, Domain, Measure, Noun, Pattern


def _money(median: float, share: float = 1.0, currency: str = "USD") -> Measure:
    return Measure(currency, median, 0.65, 3e5, 9e10, share=share)


def _percent(median: float, low: float, high: float) -> Measure:
    return Measure("percent", median, 0.3, low, high, decimals=1)


CONCEPTS = (
    Concept(
        "revenue",
        (Noun("revenue"), Noun("revenue"), Noun("net sales", plural=True)),
        (_money(9e8, 0.6), _money(9e8, 0.4, "EUR")),
        "flow",
    ),
    Concept("net profit", (Noun("net profit", "a"),), (_money(2e8, 0.6), _money(2e8, 0.4, "EUR")), "flow"),
    Concept("operating profit", (Noun("operating profit", "an"),), (_money(3e8, 0.6), _money(3e8, 0.4, "GBP")), "flow"),
    Concept(
        "R&D spending",
        (Noun("R&D spending"), Noun("R&D spending"), Noun("research and development spending")),
        (_money(1.5e8),),
        "flow",
    ),
    Concept("capital expenditure", (Noun("capital expenditure"),), (_money(2e8),), "flow"),
    Concept("advertising spending", (Noun("advertising spending"),), (_money(6e7),), "flow"),
    Concept("tax bill", (Noun("tax bill", "a"),), (_money(8e7),), "flow"),
    Concept("net debt", (Noun("net debt"),), (_money(7e8, 0.6), _money(7e8, 0.4, "EUR")), "stock"),
    Concept("order backlog", (Noun("order backlog", "an"),), (_money(9e8),), "stock"),
    Concept("cash pile", (Noun("cash pile", "a"), Noun("cash position", "a")), (_money(3e8),), "stock"),
    Concept("market capitalisation", (Noun("market capitalisation", "a"),), (_money(2e9),), "stock"),
    Concept("pension deficit", (Noun("pension deficit", "a"),), (_money(1.5e8, currency="GBP"),), "stock"),
    Concept(
        "dividend",
        (Noun("dividend", "a"), Noun("dividend", "a"), Noun("quarterly dividend", "a")),
        (Measure("USD", 0.6, 0.4, 0.03, 9.0, decimals=2),),
        "payout",
    ),
    Concept(
        "earnings per share",
        (Noun("earnings per share", plural=True), Noun("profit per share", "a")),
        (Measure("USD", 1.1, 0.4, 0.04, 24.0, decimals=2),),
        "per share",
    ),
    Concept(
        "share price",
        (Noun("share price", "a"), Noun("closing price", "a")),
        (Measure("USD", 8, 0.55, 0.2, 420.0, decimals=2),),
        "per share",
    ),
    Concept(
        "workforce",
        (Noun("workforce", "a"), Noun("headcount", "a")),
        (Measure("employee", 8000, 0.6, 120, 240000), Measure("worker", 8000, 0.6, 120, 240000, share=0.7)),
        "people",
    ),
    Concept("market share", (Noun("market share", "a"),), (_percent(18, 1.2, 72),), "share"),
    Concept("stake", (Noun("stake in {company8}", "a"),), (_percent(20, 1.1, 95),), "share"),
    Concept("operating margin", (Noun("operating margin", "an"),), (_percent(12, 1.1, 48),), "share"),
    Concept(
        "oil output",
        (Noun("oil output"), Noun("crude production")),
        (Measure("barrel/day", 120000, 0.6, 1500, 4e6),),
        "volume",
        ("oil producer", "energy group"),
    ),
    Concept(
        "metal output",
        (Noun("copper output"), Noun("zinc output")),
        (Measure("metric_ton", 90000, 0.6, 900, 3e6),),
        "volume",
        ("miner", "metals group"),
    ),
)

ASIDES = (
    Concept("goodwill", (Noun("goodwill"),), (_money(3e8, 0.5), _money(3e8, 0.3, "EUR"), _money(3e8, 0.2, "GBP"))),
    Concept(
        "restructuring costs",
        (Noun("restructuring costs", plural=True),),
        (_money(5e7, 0.5), _money(5e7, 0.3, "EUR"), _money(5e7, 0.2, "GBP")),
    ),
    Concept("legal costs", (Noun("legal costs", plural=True),), (_money(2e7, 0.5), _money(2e7, 0.5, "GBP"))),
    Concept("audit fee", (Noun("audit fee", "an"),), (_money(4e6, 0.5), _money(4e6, 0.5, "EUR"))),
    Concept("tax rate", (Noun("effective tax rate", "an"),), (_percent(22, 5, 41),)),
    Concept("free float", (Noun("free float", "a"),), (_percent(45, 8, 99),)),
    Concept("staff turnover", (Noun("staff turnover"),), (_percent(11, 2, 45),)),
)

PATTERNS = (
    Pattern("{company} said its {c} reached {q} in {year}, after it opened {count} new {sites} in {place}."),
    Pattern("In {year}, {company}'s {c} {was} {q}, according to note {few} of the annual report."),
    Pattern("The {host} {company}, founded in {earlier}, ended {year} with {ac} of {q}."),
    Pattern("With {ac} of {q}, {company} came in at number {few} of the {count} companies surveyed."),
    Pattern("{company2} overtook {company}, whose {c} had slipped to {q}, in the rankings of {year}."),
    Pattern("Analysts at {company2} expect {company}'s {c} to reach {q} by {later}, {few} years ahead of plan."),
    Pattern("Page {hundreds} of the filing puts {company}'s {c} at {q}."),
    Pattern("{person}, who has run {company} since {earlier}, told {count} investors that its {c} {was} now {q}."),
    Pattern("While {company}'s {oc} came to {oq}, its {c} {was} {q}."),
    Pattern("{company} reported {ac} of {q} and {oac} of {oq} for {year}."),
    Pattern("Of the {count} companies that we follow, only {company} has {ac} of {q}."),
    Pattern(
        "Does {company} really have {ac} of {q}, as its {year} prospectus claims, when {few} of its {count} {sites} "
        "stand idle?"
    ),
    Pattern("The {host} closed {few} {sites} in {place}, yet its {c} climbed to {q} in {year}."),
    Pattern("By the end of {month} {year} {company}'s {c} had fallen to {q}, its lowest level since {earlier}."),
    Pattern('"Our {c} {has} never stood at {q} before," said {person}, {age}, head of {company}.'),
    Pattern("{company}: {c} {q}, {oc} {oq}, {count} {sites} (year to {month} {year})."),
    Pattern("Under the plan for {later}, {company} wants its {c} to come to {q}, and {few} of its {sites} would go."),
    Pattern("Although {company} sold {few} subsidiaries in {year}, its {c} still came to {q}."),
    Pattern("Table {section} of the {year} report gives {oac} of {oq} and, one line below, {ac} of {q}."),
    Pattern("{ac} of {q} made {year} the best of {company}'s {count} years as {ahost}."),
    Pattern(
        "The merger of {company} and {company2}, agreed on {month} {dayofmonth}, {year}, creates {ahost} with {ac} of "
        "{q} and {hundreds} {sites} in {few} countries."
    ),
    Pattern("At {q}, {company}'s {c} {was} better than {few} of {count} analysts had feared in {month}."),
    Pattern("{company} put its {c} at {q} when it listed in {place} in {year}."),
    Pattern("What surprised the {count} people on the call was {company}'s {c}: {q}."),
    Pattern(
        "After a strike of {count} days at its {sites} in {place}, {company} lowered the target for its {c} to {q} for "
        "{year}."
    ),
    Pattern("{company} {verb} that its {c} would come in at {q} this year, against a guess of {count} brokers."),
    Pattern("Leaving out {oac} of {oq}, the {host}'s {c} {was} {q} in the {ordinal} quarter of {year}."),
    Pattern("The board of {company}, which met {count} times in {year}, took note of {ac} of {q}."),
    Pattern("If {company} keeps its {c} at {q} until {later}, {person} will receive a bonus worth {few} months' pay."),
    Pattern("Nobody at the {host} expected in {earlier} that its {c} would one day be {q}."),
    Pattern("Regulators in {place} noted in paragraph {count} of their ruling that {company} had {ac} of {q}."),
    Pattern("{company}'s {c} {has} settled around {q} since {year}, when {company2} bought {few} of its units."),
    Pattern(
        "Measured by {c}, which stood at {q}, {company} is number {few} in {place}.",
        ("stock", "flow", "people", "volume"),
    ),
    Pattern("Between {earlier} and {year} the {host} {company} saw its {c} creep up to {q}."),
    Pattern("{company} had {ac} of {q} on {month} {dayofmonth}, {year}, its interim statement shows."),
    Pattern("Rating agency {company2} cut {company} by {few} notches and cited {ac} of {q}."),
    Pattern(
        "Shares in {company} rose {percent} on {month} {dayofmonth} after the {host} disclosed {ac} of {q}, far from "
        "the figure that its {year} guidance had implied."
    ),
    Pattern("Item {few} on the agenda: {c} at {q}, and the closure of {count} {sites} in {place}."),
    Pattern("The {year} accounts of {company}, {hundreds} pages long, show {ac} of {q}."),
    Pattern("{person} left {company} in {year} with its {c} at {q} and {count} vacancies unfilled."),
    Pattern("A survey of {hundreds} managers named {company}, whose {c} {is} {q}, the best {host} in {place}."),
    Pattern("It took {company} {few} years and {count} new {sites} to bring its {c} to {q}."),
    Pattern("Compared with {company2}, which has {count} {sites}, {company} looks different, given {ac} of {q}."),
    Pattern(
        "{company} will restate its {year} figures, because its {c} of {q} took no account of {few} foreign {sites}."
    ),
    Pattern("The {ordinal} quarter brought {company} {ac} of {q}, its letter of {month} {dayofmonth} says."),
    Pattern("{company}'s {oc} came to {oq} in {year}; its {c}, however, stood at {q}."),
    Pattern("From {place}, where it runs {count} {sites}, {company} steers a business with {ac} of {q}."),
    Pattern("Up by {percent} since {year}, the {host}'s {c} now stand{s} at {q}."),
    Pattern("Down from a peak in {earlier}, {company}'s {c} {was} last seen at {q}, filings for {year} show."),
    Pattern(
        "{company} declared {ac} of {q}, payable on {month} {dayofmonth} to holders of its {few} share classes.",
        ("payout",),
    ),
    Pattern("Shareholders who bought in {earlier} will get {ac} of {q} from {company} in {month}.", ("payout",)),
    Pattern("The {host} raised its {c} to {q} for the {ordinal} time since {earlier}.", ("payout", "share", "flow")),
    Pattern("{company} won {ac} of {q} in {year} although {percent} of its customers left.", ("share",)),
    Pattern("{company2}, set up in {earlier}, has built up {ac} of {q} over {few} years.", ("share", "stock")),
    Pattern("Staff in {count} offices belong to {company}'s {c} of {q}, a {year} brochure says.", ("people",)),
    Pattern("{company} will shrink its {c} to {q} by {later} and leave {few} of its {sites}.", ("people", "stock")),
    Pattern("{person} joined {company} in {earlier}, when its {c} counted {q} at {few} {sites}.", ("people",)),
    Pattern("A storm shut {few} {sites} for {count} days and held {company}'s {c} to {q}.", ("volume", "flow")),
    Pattern("{company}'s {c} averaged {q} in {year}, with {count} of its {hundreds} wells and pits shut.", ("volume",)),
    Pattern("Once its {ordinal} project starts in {later}, the {host} expects {ac} of {q}.", ("volume", "flow")),
    Pattern("{company} booked {ac} of {q} in the {count} weeks to {month} {dayofmonth}, {year}.", ("flow",)),
    Pattern(
        "Banks led by {company2} agreed to refinance {company}, whose {c} {was} {q} at the end of {year}, "
        "over {few} years.",
        ("stock",),
    ),
    Pattern("The {count} {sites} it runs in {place} brought {company} {ac} of {q} last year.", ("flow",)),
    Pattern("{company} cut its {c} to {q} in {year} by selling {few} {sites} to {company2}.", ("stock", "people")),
    Pattern("Had {company} not lost contract {hundreds} in {place}, its {c} would have been {q} in {year}."),
    Pattern("Among firms that went public in {year}, {company} stands out for its {c} ({q}) and its {count} {sites}."),
    Pattern("{company} (founded {earlier}; {count} {sites}; {c} {q}) is up for sale, two people close to it said."),
    Pattern("Alongside {oac} of {oq}, {company} disclosed {ac} of {q} in {year}."),
    Pattern("{company}'s letter of {month} {year} mentions {oac} of {oq} in passing and dwells on {ac} of {q}."),
    Pattern("Asked about {company}'s {oc} ({oq}), {person} spoke only of its {c} ({q}) for {count} minutes."),
    Pattern("{company}'s {c} stood at {q} in {year}, when {company2} had {oac} of {oq}."),
    Pattern("{company2}, with {oac} of {oq}, is bidding for {company}, {ahost} with {ac} of {q}."),
    Pattern("Not the {oc} of {oq} but the {c} of {q} worried the lenders of {company} in {year}."),
    Pattern("The {year} scorecard of the {host} has {few} lines, among them {c} ({q}) and {oc} ({oq})."),
    Pattern("{company} guided to {oac} of {oq} for {later} and left the target for its {c} at {q}."),
    Pattern("{person} called {oac} of {oq} tolerable for {ahost} of {count} years that has {ac} of {q}."),
    Pattern("In the {ordinal} quarter {company} showed {ac} of {q}, next to {oac} of {oq}."),
    Pattern("Rumours of {year} put {company2}'s {oc} at {oq}; {company}'s {c} {is} known to be {q}."),
    Pattern("A footnote on page {count} corrects {company}'s {c} to {q} and leaves its {oc} at {oq}."),
)

FILLERS = {
    "company": ("{stem} {suffix}", "{stem} {suffix}", "{stem}"),
    "stem": (
        "Aldervane", "Bexworth", "Brontavia", "Calderix", "Corvanta", "Dalmeris", "Drayfeld", "Eldermoor", "Estravel",
        "Fenwald", "Fjordane", "Galthera", "Glenmarsh", "Halvorex", "Harrowgate", "Inverloch", "Istrelle", "Jorvanna",
        "Kesselbrook", "Kordavia", "Larkmont", "Lindquarry", "Marrowick", "Meridanta", "Nordhaven", "Novabrisk",
        "Oakenshaw", "Orsolva", "Pellinore", "Pemberwyn", "Quillarne", "Quorvex", "Ravensholm", "Rostrevia",
        "Saltmere", "Silvandor", "Tarnwick", "Thessalon", "Tolvera", "Ulmstead", "Umbravia", "Valdoria", "Verrick",
        "Westermane", "Wolfenby", "Xantrel", "Yarrowdale", "Yelverton", "Zandrick", "Zephrane",
    ),
    "suffix": ("Group", "Holdings", "Industries", "Partners", "International", "Corp", "plc", "Ventures", "Works"),
    "person": (
        "Maren Aldous", "Tobias Renwick", "Ines Calvaro", "Jonas Ferrand", "Priya Nambiar", "Olga Petrenska",
        "Samuel Okoro", "Linnea Holm", "Carlo Bentivenga", "Yuki Tanabe", "Ruth Ashdown", "Emeka Balogun",
    ),
    "place": (
        "Brazil", "Norway", "Vietnam", "Poland", "Kenya", "Chile", "Canada", "Spain", "Indonesia", "Turkey", "Peru",
        "South Africa", "Texas", "Ohio", "Bavaria", "Scotland", "Queensland", "Portugal",
    ),
    "sites": ("sites", "offices", "branches", "warehouses", "depots", "plants"),
    "month": ("January", "February", "April", "June", "July", "September", "October", "November"),
    "ordinal": ("first", "second", "third", "fourth"),
    "verb": ("announced", "warned", "confirmed", "told investors", "said on Tuesday"),
}  # fmt: skip

FINANCE = Domain(
    name="finance",
    hosts=(
        "oil producer", "energy group", "miner", "metals group", "retailer", "software maker", "carmaker", "drugmaker",
        "food group", "shipping line", "chemicals maker", "chipmaker", "builder", "hotel chain",
    ),
    concepts=CONCEPTS,
    asides=ASIDES,
    patterns=PATTERNS,
    fillers=FILLERS,
)  # fmt: skip

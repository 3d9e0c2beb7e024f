import java.io.File;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import net.sf.okapi.common.Event;
import net.sf.okapi.common.ISegmenter;
import net.sf.okapi.common.LocaleId;
import net.sf.okapi.common.exceptions.OkapiUnexpectedRevisionException;
import net.sf.okapi.common.filters.IFilter;
import net.sf.okapi.common.filterwriter.IFilterWriter;
import net.sf.okapi.common.filterwriter.XLIFFWriter;
import net.sf.okapi.common.resource.ITextUnit;
import net.sf.okapi.common.resource.RawDocument;
import net.sf.okapi.common.resource.Segment;
import net.sf.okapi.common.resource.TextContainer;
import net.sf.okapi.common.resource.TextFragment;
import net.sf.okapi.common.resource.TextFragmentUtil;
import net.sf.okapi.filters.epub.EpubFilter;
import net.sf.okapi.filters.idml.IDMLFilter;
import net.sf.okapi.filters.openxml.OpenXMLFilter;
import net.sf.okapi.filters.xliff.XLIFFFilter;
import net.sf.okapi.lib.segmentation.SRXDocument;

/**
 * Texts of a DOCX, XLSX, PPTX, EPUB or IDML out of it, and their translations into a copy of it.
 *
 * <pre>
 * java -cp 'JARS/*' Office extract IN.docx OUT.xlf  en fr
 * java -cp 'JARS/*' Office merge   IN.docx FILLED.xlf en fr OUT.docx
 * </pre>
 *
 * An error ends it with 1 and one line on standard error.
 */
public final class Office {
  private final LocaleId from;
  private final LocaleId to;
  private final ISegmenter sentences;

  private Office(String from, String to) throws Exception {
    this.from = LocaleId.fromBCP47(from);
    this.to = LocaleId.fromBCP47(to);
    SRXDocument rules = new SRXDocument();
    try (InputStream read = SRXDocument.class.getResourceAsStream("defaultSegmentation.srx")) {
      rules.loadRules(read);
    }
    rules.setTrimLeadingWhitespaces(true);
    rules.setTrimTrailingWhitespaces(true);
    rules.setTreatIsolatedCodesAsWhitespace(true); // a line break ends a word
    sentences = rules.compileLanguageRules(this.from, null);
  }

  public static void main(String[] args) {
    try {
      Office office = new Office(args[3], args[4]);
      if (args[0].equals("extract")) {
        office.extract(new File(args[1]), args[2]);
      } else {
        office.merge(new File(args[1]), new File(args[2]), args[5]);
      }
    } catch (Throwable thrown) {
      Throwable first = thrown;
      while (first.getCause() != null) {
        first = first.getCause();
      }
      System.err.println(reason(first).replaceAll("\\s+", " "));
      System.exit(1);
    }
  }

  private static String reason(Throwable thrown) {
    if (thrown instanceof OkapiUnexpectedRevisionException) {
      return "it has tracked changes; accept or reject them first";
    }
    return thrown.getMessage() == null ? thrown.getClass().getSimpleName() : thrown.getMessage();
  }

  private IFilter opened(File file) {
    IFilter filter = filterOf(file.getName().toLowerCase(Locale.ROOT));
    filter.open(new RawDocument(file.toURI(), "UTF-8", from, to));
    return filter;
  }

  private static IFilter filterOf(String name) {
    if (name.endsWith(".epub")) {
      return new EpubFilter();
    }
    if (name.endsWith(".idml")) {
      return new IDMLFilter();
    }
    OpenXMLFilter filter = new OpenXMLFilter();
    filter.getParameters().setTranslateDocProperties(false);
    filter.getParameters().setAutomaticallyAcceptRevisions(false);
    return filter;
  }

  private void extract(File file, String xliff) {
    XLIFFWriter writer = new XLIFFWriter();
    writer.getParameters().setIncludeNoTranslate(true);
    writer.setOptions(to, "UTF-8");
    writer.setOutput(xliff);
    IFilter filter = opened(file);
    try {
      while (filter.hasNext()) {
        Event event = filter.next();
        if (event.isTextUnit()) {
          event.getTextUnit().createSourceSegmentation(sentences);
        }
        writer.handleEvent(event);
      }
    } finally {
      filter.close();
      writer.close();
    }
  }

  private void merge(File file, File xliff, String merged) {
    Iterator<ITextUnit> filled = units(xliff).iterator();
    IFilter filter = opened(file);
    IFilterWriter writer = filter.createFilterWriter();
    writer.setOptions(to, "UTF-8");
    writer.setOutput(merged);
    try {
      while (filter.hasNext()) {
        Event event = filter.next();
        if (event.isTextUnit()) {
          ITextUnit unit = event.getTextUnit();
          unit.createSourceSegmentation(sentences);
          fill(unit, filled.next());
        }
        writer.handleEvent(event);
      }
    } finally {
      filter.close();
      writer.close();
    }
  }

  private List<ITextUnit> units(File xliff) {
    List<ITextUnit> found = new ArrayList<>();
    XLIFFFilter filter = new XLIFFFilter();
    filter.open(new RawDocument(xliff.toURI(), "UTF-8", from, to));
    try {
      while (filter.hasNext()) {
        Event event = filter.next();
        if (event.isTextUnit()) {
          found.add(event.getTextUnit());
        }
      }
    } finally {
      filter.close();
    }
    return found;
  }

  /** Puts the translated segments into a unit; what has none stays as it is. */
  private void fill(ITextUnit unit, ITextUnit filled) {
    if (!unit.getId().equals(filled.getId())) {
      throw new IllegalStateException(
          "unit " + unit.getId() + " of the file is " + filled.getId() + " of the XLIFF");
    }
    TextContainer translated = filled.getTarget(to);
    if (translated == null) {
      return;
    }
    TextContainer target = unit.getSource().clone();
    for (Segment segment : target.getSegments()) {
      Segment other = translated.getSegments().get(segment.getId());
      if (other != null && !other.getContent().isEmpty()) {
        TextFragment content = other.getContent();
        TextFragmentUtil.alignAndCopyCodeMetadata(segment.getContent(), content, true, true);
        segment.setContent(content);
      }
    }
    target.joinAll(); // a writer would drop what stands between segments
    unit.setTarget(to, target);
  }
}
